// Decoding on CUDA: models fed piece by piece, with captured steps, against the whole sequence; the ops are decode_ops_check's. Exit code 1
// when a case fails, 77 without a GPU. `decode_check models` and `decode_check avey` do a part.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/avey/ranker.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/training/batch_decoder.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"
#include "tests/support/random_stacks.h"

using namespace saccade;
using nlohmann::json;

namespace {

constexpr int64_t kLength = 400, kVocabulary = 97;

/// How a model is made whose weights are larger than initial ones, so that what is read shows.
struct Making {
  int64_t length = kLength;
  double larger = 0.1;  ///< matrices by so much
  Device device = Device::cuda(0);
};
std::unique_ptr<InferenceModel> model_of(const json& settings, const std::string& precision, const Making& making = {}) {
  json architecture{{"width", 128}, {"layers", 2}};
  if (!is_stack(settings))
    for (const Setting& s : settings_of(settings.at("block"), settings.value("mixer", "")))
      if (s.name == "heads") architecture["heads"] = 2;
  architecture.update(settings);
  auto model = std::make_unique<InferenceModel>(resolve_architecture(architecture, making.length), kVocabulary, making.length,
                                                making.device, precision, 3);
  std::vector<NamedTensor> weights;
  Arena host(Device::cpu());
  for (const Parameter& p : model->model().parameters()) {
    const Random random(9, p.name);
    std::vector<double> values = to_doubles(p.value);
    for (size_t i = 0; i < values.size(); ++i) values[i] += (p.decay ? making.larger : 0.05) * random.normal(i);
    weights.push_back({p.name, host.allocate(p.value.shape(), p.value.dtype())});
    from_doubles(weights.back().tensor, values);
  }
  model->load(weights);
  return model;
}

std::vector<double> logits_of_all(InferenceModel& model, std::span<const int32_t> tokens) {
  const Tensor x = model.arena().allocate({1, static_cast<int64_t>(tokens.size())}, DType::i32);
  copy_from_host(x, tokens.data());
  return to_doubles(model.model().logits(model.tape(), x));
}

std::vector<int32_t> random_text(uint64_t number, int64_t length) {
  std::vector<int32_t> tokens;
  const Random random(number, "tokens");
  for (uint64_t i = 0; i < static_cast<uint64_t>(length); ++i) tokens.push_back(static_cast<int32_t>(random.below(kVocabulary, i)));
  return tokens;
}

/// Largest difference of logits behind one token, relative to the largest of all.
double apart(const double* logits, const std::vector<double>& truth, int64_t token) {
  double d = 0;
  for (int64_t i = 0; i < kVocabulary; ++i) {
    const double e = std::abs(logits[i] - truth[static_cast<size_t>(token * kVocabulary + i)]);
    d = std::isfinite(e) ? std::max(d, e) : INFINITY;
  }
  return d / test::largest(truth);
}

/// Logits of a text as the whole of it gives them or, where positions look ahead, all tokens up to one.
class Whole {
 public:
  Whole(InferenceModel& model, const std::vector<int32_t>& tokens, const json& settings) : model_(model), tokens_(tokens) {
    if (!is_stack(settings))
      if (const Architecture& block = architecture(settings.at("block")); block.looks_ahead) {
        settings_ = resolve_architecture(settings, kLength);
        so_far_ = !block.looks_ahead(settings_).empty();
      }
    if (!so_far_) read_all();
  }
  /// Logits up to a token at least.
  const std::vector<double>& up_to(int64_t token) {
    if (so_far_) logits_ = logits_of_all(model_, std::span(tokens_).first(static_cast<size_t>(token + 1)));
    return logits_;
  }
  /// Whether Avey's ranker, in double, finds two choices equally good for the split of a token: texts of few different tokens have splits
  /// with the same score (cos(a, b) = cos(b, a)), and how products are rounded decides which of them is read. Either is right.
  bool tied(int64_t token) const {
    if (!so_far_) return false;
    const Tensor& E = model_.model().parameters().front().value;  // the embedding
    const std::vector<double> embedding = to_doubles(E);
    const int64_t width = E.dim(1), split = settings_.at("split"), top_k = settings_.at("top_k"), i = token / split;
    if (i <= top_k) return false;
    Arena host(Device::cpu());
    Tape tape(host, false);
    const Tensor x = host.allocate({1, token + 1, width}, DType::f64);
    for (int64_t t = 0; t <= token; ++t)
      std::copy_n(embedding.begin() + tokens_[static_cast<size_t>(t)] * width, width, x.data<double>() + t * width);
    const Tensor maxsim = avey::rank(tape, x, {.split = split, .top_k = top_k}).maxsim;
    std::vector<double> scores(maxsim.data<double>() + i * (i + 1), maxsim.data<double>() + i * (i + 1) + i);
    std::sort(scores.rbegin(), scores.rend());
    const double last = scores[static_cast<size_t>(top_k - 1)];
    return last - scores[static_cast<size_t>(top_k)] <= 1e-12 * std::abs(last);
  }

 private:
  void read_all() { logits_ = logits_of_all(model_, tokens_); }

  InferenceModel& model_;
  std::vector<int32_t> tokens_;
  json settings_;
  bool so_far_ = false;
  std::vector<double> logits_;
};

struct Deviations {
  double sum = 0, most = 0;
  void add(double d) { sum += d, most = std::max(most, d); }
};

/// Logits behind every token of a sequence that a decoder is fed, against the whole sequence's. A stack of many layers in bf16 may be twice
/// as far from float32 as its whole sequence is: on average, because of two nearly equal scores either may be chosen, and all later tokens
/// show it.
void check_model(const json& settings, const std::string& precision) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  const std::vector<int32_t> tokens = random_text(4, kLength);
  const auto model = model_of(settings, precision);
  Whole all(*model, tokens, settings);
  const bool bf16 = precision == "bf16", selects = settings.dump().find("top1") != std::string::npos;
  const std::vector<double> truth = bf16 && is_stack(settings) ? logits_of_all(*model_of(settings, "f32"), tokens) : std::vector<double>();
  Decoder decoder(*model, kLength);
  const double tolerance = bf16 ? 5e-2 : 1e-4;
  int64_t pieces = 0, wrong = 0, tied = 0;
  Deviations from_whole, from_truth, of_whole;
  for (int64_t at = 0; at < kLength; ++pieces) {
    const int64_t n = at == 0 ? 130 : pieces % 20 == 19 ? 5 : 1;
    decoder.feed(std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(n, kLength - at))));
    at = decoder.length();
    const std::vector<double> logits = decoder.logits(), &whole = all.up_to(at - 1);
    const double d = apart(logits.data(), whole, at - 1);
    if (!(d <= tolerance) && all.tied(at - 1)) {
      ++tied;
      continue;
    }
    from_whole.add(d);
    if (!(d <= tolerance)) ++wrong;
    if (truth.empty()) continue;
    from_truth.add(apart(logits.data(), truth, at - 1));
    of_whole.add(apart(whole.data() + (at - 1) * kVocabulary, truth, at - 1));
  }
  char what[200];
  if (truth.empty()) {
    std::snprintf(what, sizeof what, "off by %.2g, %lld of %lld pieces beyond %.0e, %lld where choices are tied", from_whole.most,
                  static_cast<long long>(wrong), static_cast<long long>(pieces), tolerance, static_cast<long long>(tied));
    // In bf16 a choice may fall otherwise where two are as good as equal, and what follows reads that.
    test::report(settings.dump() + " " + precision, (wrong == 0 || (selects && wrong * 20 <= pieces && bf16)) && tied * 50 <= pieces, what);
  } else {
    const double count = static_cast<double>(pieces);
    std::snprintf(what, sizeof what, "from float32 %.2g on average and %.2g at most, the whole sequence %.2g and %.2g",
                  from_truth.sum / count, from_truth.most, of_whole.sum / count, of_whole.most);
    test::report(settings.dump() + " " + precision,
                 std::isfinite(of_whole.sum) && from_truth.sum <= 2 * of_whole.sum && (selects || from_truth.most <= 2 * of_whole.most),
                 what);
  }
}

/// Sequences of their own lengths side by side, one of which is replaced: logits behind every token against the whole sequences'.
void check_batch(const json& settings, const std::string& precision) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  const auto model = model_of(settings, precision);
  std::vector<std::vector<int32_t>> texts(4);
  std::vector<Whole> whole;
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] = random_text(20 + i, kLength);
    whole.emplace_back(*model, texts[i], settings);
  }
  BatchDecoder decoder(*model, 3, kLength);
  std::vector<size_t> text{0, 1, 2};
  const double tolerance = precision == "bf16" ? 5e-2 : 1e-4;
  const bool selects = settings.dump().find("top1") != std::string::npos;
  Deviations off;
  int64_t count = 0, wrong = 0, likeliest = 0;
  const auto compare_place = [&](int64_t b) {
    const std::vector<double> logits = decoder.logits(b);
    const int64_t at = decoder.length(b) - 1;
    const double d = apart(logits.data(), whole[text[static_cast<size_t>(b)]].up_to(at), at);
    off.add(d), ++count, wrong += !(d <= tolerance);
    likeliest += decoder.likeliest(b) == std::max_element(logits.begin(), logits.end()) - logits.begin();
  };
  const auto start = [&](int64_t b, size_t number, int64_t prompt) {
    text[static_cast<size_t>(b)] = number;
    decoder.start(b, std::span(texts[number]).first(static_cast<size_t>(prompt)));
    compare_place(b);
  };
  const auto feed = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      std::vector<int32_t> next;
      for (int64_t b = 0; b < 3; ++b) next.push_back(texts[text[static_cast<size_t>(b)]][static_cast<size_t>(decoder.length(b))]);
      decoder.feed(next);
      for (int64_t b = 0; b < 3; ++b) compare_place(b);
    }
  };
  start(0, 0, 130), start(1, 1, 17), start(2, 2, 64);
  feed(40);
  start(1, 3, 31);
  feed(30);
  char what[200];
  std::snprintf(what, sizeof what, "off by %.2g, %lld of %lld beyond %.0e, %lld likeliest as the host has them", off.most,
                static_cast<long long>(wrong), static_cast<long long>(count), tolerance, static_cast<long long>(likeliest));
  // As above: in bf16 a choice may fall otherwise.
  test::report("side by side " + settings.dump() + " " + precision,
               likeliest == count && (wrong == 0 || (selects && precision == "bf16" && wrong * 20 <= count)), what);
}

/// Sequences of all lengths side by side, at a preset's size: logits behind the last token as a decoder of one sequence gives them.
void check_many(const json& settings, const std::string& precision, int64_t places) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  constexpr int64_t kLong = 700, kSteps = 9;
  const auto model = model_of(settings, precision, {kLong, 0.02});
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<double>> together;
  for (int64_t b = 0; b < places; ++b)
    texts.push_back(random_text(40 + static_cast<uint64_t>(b), 1 + (b * 131 + 509) % (kLong - kSteps) + kSteps));
  const auto prompt_of = [&](size_t b) { return std::span<const int32_t>(texts[b]).first(texts[b].size() - kSteps); };
  {
    BatchDecoder decoder(*model, places, kLong);
    for (size_t b = 0; b < texts.size(); ++b) decoder.start(static_cast<int64_t>(b), prompt_of(b));
    for (size_t i = kSteps; i > 0; --i) {
      std::vector<int32_t> next;
      for (const auto& text : texts) next.push_back(text[text.size() - i]);
      decoder.feed(next);
    }
    for (int64_t b = 0; b < places; ++b) together.push_back(decoder.logits(b));
  }
  Deviations off;
  for (size_t b = 0; b < texts.size(); ++b) {
    Decoder alone(*model, kLong);
    alone.feed(prompt_of(b));
    for (size_t i = kSteps; i > 0; --i) alone.feed(std::span<const int32_t>(texts[b]).last(i).first(1));
    off.add(apart(together[b].data(), alone.logits(), 0));
  }
  char what[100];
  std::snprintf(what, sizeof what, "off by %.2g at most", off.most);
  test::report(std::to_string(places) + " side by side " + settings.dump() + " " + precision,
               off.most <= (precision == "bf16" ? 5e-2 : 1e-4), what);
}

json avey_10m(const json& changes) {
  json settings{{"block", "avey"}, {"width", 256}, {"layers", 14}, {"split", 64}, {"top_k", 7}};
  settings.update(changes);
  return settings;
}

void check_models() {
  for (const std::string precision : {"f32", "bf16"})
    for (const char* block : {"llama", "gpt"})
      for (const json& mixer : std::vector<json>{{{"mixer", "attention"}},
                                                 {{"mixer", "attention"}, {"window", 50}},
                                                 {{"mixer", "attention"}, {"relation", "constant-keys"}},
                                                 {{"mixer", "attention"}, {"relation", "constant-both"}, {"position", "alibi"}},
                                                 {{"mixer", "attention"}, {"qk_norm", "l2"}, {"temperature", 0.25}},
                                                 {{"mixer", "top1_element"}},
                                                 {{"mixer", "top1_chunk"}, {"chunk", 32}},
                                                 {{"mixer", "top1_chunk"}, {"chunk", 32}, {"selection", "approx"}},
                                                 {{"mixer", "top1_chunk"}, {"chunk", 16}, {"selection", "approx"}, {"top_k", 3}}}) {
        json settings = mixer;
        settings["block"] = block;
        check_model(settings, precision);
        check_batch(settings, precision);
      }
  for (const std::string precision : {"f32", "bf16"})
    for (const json& settings : std::vector<json>{{{"block", "mamba"}, {"mixer", "mamba1"}},
                                                  {{"block", "mamba"}, {"mixer", "mamba2"}, {"heads", 4}, {"state", 16}},
                                                  {{"block", "rwkv"}, {"mixer", "rwkv5"}},
                                                  {{"block", "rwkv"}, {"mixer", "rwkv6"}},
                                                  {{"block", "rwkv"}, {"mixer", "rwkv7"}},
                                                  {{"block", "rwkv"}, {"mixer", "attention"}, {"mixer_inputs", "shifted"}},
                                                  {{"block", "rwkv"}, {"mixer", "top1_chunk"}, {"chunk", 32}, {"mixer_inputs", "full"}},
                                                  {{"block", "llama"}, {"mixer", "deltanet"}},
                                                  {{"block", "llama"}, {"mixer", "gated_deltanet"}},
                                                  {{"block", "llama"}, {"mixer", "based"}, {"layers", 3}, {"window", 50}},
                                                  {{"block", "gpt"}, {"mixer", "attention"}, {"position", "absolute"}}}) {
      check_model(settings, precision);
      check_batch(settings, precision);
    }
  for (const std::string precision : {"f32", "bf16"})
    for (json settings : std::vector<json>{{{"mixer", "attention"}},
                                           {{"mixer", "attention"}, {"window", 600}, {"qk_norm", "rms"}},
                                           {{"mixer", "top1_element"}},
                                           {{"mixer", "top1_chunk"}, {"chunk", 64}, {"selection", "approx"}},
                                           {{"mixer", "gated_deltanet"}}}) {
      settings.update({{"block", "llama"}, {"width", 320}, {"layers", 8}, {"heads", 5}});
      check_many(settings, precision, 64);
    }
  for (const std::string precision : {"f32", "bf16"})
    for (const auto& [name, settings] : test::random_stacks(400, 128)) check_model(settings, precision);
}

std::vector<json> avey_settings() {
  std::vector<json> all;
  for (json changes : std::vector<json>{json::object(),
                                        {{"mask_padding", true}},
                                        {{"ranker_query", "causal"}},
                                        {{"ranker_query", "causal"}, {"mask_padding", true}, {"weight_reference", "first"}},
                                        {{"weighting", false}},
                                        {{"weight_reference", "first"}},
                                        {{"dynamic", false}},
                                        {{"dynamic", false}, {"mask_padding", true}},
                                        {{"bypass", false}, {"norm", "layer"}, {"enricher_activation", "silu"}},
                                        {{"contextualizer_activation", "gelu"}, {"mask_padding", true}},
                                        {{"ranker", false}},
                                        {{"ranker", false}, {"processor", "attention"}},
                                        {{"processor", "attention"}, {"position", "rotary"}},
                                        {{"processor", "attention"}, {"position", "alibi"}, {"mask_padding", true}},
                                        {{"split", 7}, {"top_k", 2}},
                                        {{"split", 7}, {"top_k", 2}, {"mask_padding", true}, {"ranker_query", "causal"}},
                                        {{"split", 64}, {"top_k", 7}},
                                        {{"split", 32}, {"top_k", 3}, {"width", 100}}}) {
    json settings{{"block", "avey"}, {"split", 16}, {"top_k", 3}};
    settings.update(changes);
    all.push_back(settings);
  }
  return all;
}

/// The preset avey-10m on a text of 2048 tokens, in double on the CPU, in float32 and in bf16; prompts and pieces of odd lengths, single
/// tokens across the ends of splits. In bf16 it may be twice as far from double as the whole text so far is, on average.
void check_real_size(const json& changes) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  constexpr int64_t kLong = 2048;
  json settings{{"block", "avey"}, {"width", 256}, {"layers", 14}, {"split", 64}, {"top_k", 7}};
  settings.update(changes);
  const std::vector<int32_t> tokens = random_text(6, kLong);
  const auto exact = model_of(settings, "f64", {kLong, 0.02, Device::cpu()});
  const auto single = model_of(settings, "f32", {kLong, 0.02}), half = model_of(settings, "bf16", {kLong, 0.02});
  Decoder of_exact(*exact, kLong), of_single(*single, kLong), of_half(*half, kLong);
  std::vector<int64_t> pieces{509};
  pieces.insert(pieces.end(), 5, 1);
  pieces.insert(pieces.end(), {60, 1, 1, 1, 1, 705, 1, 1, 62, 1, 692});
  for (int64_t sum = std::accumulate(pieces.begin(), pieces.end(), int64_t{0}); sum < kLong; ++sum) pieces.push_back(1);
  Deviations f32, bf16, whole;
  for (const int64_t n : pieces) {
    const auto piece = std::span(tokens).subspan(static_cast<size_t>(of_exact.length()), static_cast<size_t>(n));
    for (Decoder* decoder : {&of_exact, &of_single, &of_half}) decoder->feed(piece);
    const std::vector<double> truth = of_exact.logits();
    f32.add(apart(of_single.logits().data(), truth, 0));
    bf16.add(apart(of_half.logits().data(), truth, 0));
    const std::vector<double> all = logits_of_all(*half, std::span(tokens).first(static_cast<size_t>(of_exact.length())));
    whole.add(apart(all.data() + (of_exact.length() - 1) * kVocabulary, truth, 0));
  }
  char what[200];
  const auto count = static_cast<double>(pieces.size());
  std::snprintf(what, sizeof what, "from double: float32 %.2g at most; bf16 %.2g on average and %.2g at most, its whole text %.2g and %.2g",
                f32.most, bf16.sum / count, bf16.most, whole.sum / count, whole.most);
  test::report("2048 tokens " + settings.dump(), f32.most <= 1e-4 && std::isfinite(whole.sum) && bf16.sum <= 2 * whole.sum, what);
}

/// One pass over several tokens of sequences at positions of their own is as good as single tokens.
void check_pieces_apart(const std::string& precision) {
  const json settings{{"block", "avey"}, {"split", 16}, {"top_k", 3}};
  const auto model = model_of(settings, precision);
  constexpr int64_t kPiece = 21;
  const std::vector<int64_t> prompts{5, 77, 130};
  const auto batch = static_cast<int64_t>(prompts.size());
  const auto run = [&](int64_t piece) {
    DecodingState state = model->model().begin(model->arena(), model->activations(), batch, kLength);
    state.let_lengths_differ(model->arena());
    for (int64_t b = 0; b < batch; ++b) {
      DecodingState one = state.sequence(b, 0);
      const Tensor x = model->arena().allocate({1, prompts[static_cast<size_t>(b)]}, DType::i32);
      copy_from_host(x, random_text(60 + static_cast<uint64_t>(b), kLength).data());
      model->model().extend(model->tape(), x, one);
    }
    std::vector<double> last;
    state.length = 130;
    for (int64_t at = 0; at < kPiece; at += piece) {
      std::vector<int32_t> next;
      for (int64_t b = 0; b < batch; ++b) {
        const std::vector<int32_t> text = random_text(60 + static_cast<uint64_t>(b), kLength);
        next.insert(next.end(), text.begin() + prompts[static_cast<size_t>(b)] + at,
                    text.begin() + prompts[static_cast<size_t>(b)] + at + piece);
      }
      const Tensor x = model->arena().allocate({batch, piece}, DType::i32);
      copy_from_host(x, next.data());
      const std::vector<double> y = to_doubles(model->model().extend(model->tape(), x, state));
      last.clear();
      for (int64_t b = 0; b < batch; ++b)
        last.insert(last.end(), y.begin() + ((b + 1) * piece - 1) * 128, y.begin() + (b + 1) * piece * 128);
    }
    return last;
  };
  const std::vector<double> singly = run(1), pieces = run(7), at_once = run(kPiece);
  test::report("pieces apart " + precision, singly == pieces && singly == at_once && singly.size() == 3 * 128 && test::largest(singly) > 0,
               "the same bytes for pieces of 1, 7 and 21");
}

/// Continuations of contexts that are read once have the losses that whole sequences have.
void check_shared_contexts(json settings, const std::string& precision) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  constexpr int64_t kContext = 77, kMore = 21;
  settings.update({{"block", "avey"}, {"split", 16}, {"top_k", 3}});
  const auto model = model_of(settings, precision);
  EvaluationPass pass(
      model->model(), model->arena(), [&](Tape& tape) { model->prepare(tape); }, 4096);
  Continuations batch{kContext, kMore, {}, {0, 1, 0, 1, 1}, {}, {}};
  for (uint64_t c = 0; c < 2; ++c) {
    const std::vector<int32_t> text = random_text(80 + c, kContext);
    batch.contexts.insert(batch.contexts.end(), text.begin(), text.end());
  }
  std::vector<int32_t> tokens, targets;  // of whole sequences
  const auto rows = static_cast<int64_t>(batch.context_of.size());
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<int32_t> more = random_text(90 + static_cast<uint64_t>(row), kMore + 1);
    const auto context = batch.contexts.begin() + batch.context_of[static_cast<size_t>(row)] * kContext;
    batch.tokens.insert(batch.tokens.end(), more.begin(), more.end() - 1);
    batch.targets.insert(batch.targets.end(), more.begin() + 1, more.end());
    std::vector<int32_t> all(context, context + kContext);
    all.insert(all.end(), more.begin(), more.end());
    tokens.insert(tokens.end(), all.begin(), all.end() - 1);
    targets.insert(targets.end(), all.begin() + 1, all.end());
  }
  const std::vector<double> whole = pass.token_scores(tokens.data(), targets.data(), rows, kContext + kMore, false).losses;
  const std::vector<double> shared = pass.continuation_scores(batch, false).losses;
  double off = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t t = 0; t < kMore; ++t) {
      const double expected = whole[static_cast<size_t>(row * (kContext + kMore) + kContext + t)];
      const double d = std::abs(shared[static_cast<size_t>(row * kMore + t)] - expected) / test::largest(whole);
      off = std::isfinite(d) ? std::max(off, d) : INFINITY;
    }
  char what[60];
  std::snprintf(what, sizeof what, "losses off by %.2g", off);
  test::report("shared contexts " + settings.dump() + " " + precision, off <= (precision == "bf16" ? 5e-2 : 1e-4), what);
}

void check_avey() {
  for (const std::string precision : {"f32", "bf16"}) {
    for (const json& settings : avey_settings()) {
      check_model(settings, precision);
      check_batch(settings, precision);
    }
    check_pieces_apart(precision);
    for (const json& changes : std::vector<json>{{{"ranker_query", "causal"}},
                                                 {{"ranker_query", "causal"}, {"mask_padding", true}},
                                                 {{"ranker", false}},
                                                 {{"ranker", false}, {"processor", "attention"}}})
      check_shared_contexts(changes, precision);
    for (const json& changes : std::vector<json>{json::object(), {{"ranker_query", "causal"}, {"mask_padding", true}}})
      check_many(avey_10m(changes), precision, 64);
    check_many(avey_10m({{"ranker", false}}), precision, 5);
  }
  for (const json& changes :
       std::vector<json>{json::object(), {{"ranker_query", "causal"}, {"mask_padding", true}}, {{"ranker", false}, {"layers", 4}}})
    check_real_size(changes);
}

}  // namespace

int main(int argc, char** argv) {
  test::first_gpu();
  const std::string what = argc > 1 ? argv[1] : "";
  if (what.empty() || what == "models") check_models();
  if (what.empty() || what == "avey") check_avey();
  return test::end_of_cases();
}

// Decoding on CUDA: the ops against the CPU in double, and models fed piece by piece, with captured steps, against the whole
// sequence. Exit code 1 when a case fails, 77 without a GPU. `decode_check ops` and `decode_check models` do a half.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"
#include "models/training/batch_decoder.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"
#include "tests/support/random_stacks.h"

using namespace saccade;
using nlohmann::json;

namespace {

int failures = 0;

void report(const std::string& name, bool good, const std::string& what) {
  std::printf("%s %s: %s\n", good ? "ok  " : "FAIL", name.c_str(), what.c_str());
  std::fflush(stdout);
  if (!good) ++failures;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (double v : x) most = std::max(most, std::abs(v));
  return most;
}

/// Cached queries, keys and values of one case: on the GPU, and the same rounded values on the CPU in double.
struct Inputs {
  int64_t batch, n, capacity, heads, width, first;

  struct Side {
    Arena arena;
    Tape tape;
    Tensor q, k, v, position;
    explicit Side(Device device) : arena(device), tape(arena, false) {}
    TokenPosition at(int64_t place) const { return {place, position}; }
  };
  Side gpu{Device::cuda(0)}, cpu{Device::cpu()};

  Inputs(const Shape& cache, int64_t new_tokens, int64_t first_new, DType dtype)
      : batch(cache[0]), n(new_tokens), capacity(cache[1]), heads(cache[2]), width(cache[3]), first(first_new) {
    put(gpu.q, cpu.q, {batch, n, heads, width}, dtype, 1);
    put(gpu.k, cpu.k, cache, dtype, 2);
    put(gpu.v, cpu.v, cache, dtype, 3);
    gpu.position = gpu.arena.allocate({1}, DType::i32);
    from_doubles(gpu.position, {static_cast<double>(first)});
  }
  void put(Tensor& on_gpu, Tensor& on_cpu, const Shape& shape, DType dtype, uint64_t seed) {
    on_gpu = gpu.arena.allocate(shape, dtype);
    const Random random(seed, "decode");
    std::vector<double> values;
    for (int64_t i = 0; i < shape.size(); ++i) values.push_back(random.normal(static_cast<uint64_t>(i)));
    from_doubles(on_gpu, values);
    on_cpu = cpu.arena.allocate(shape, DType::f64);
    from_doubles(on_cpu, to_doubles(on_gpu));
  }
};

/// Rows of o whose query selected the same on both sides must agree; others must be few.
void compare(const std::string& name, DType dtype, const Inputs& in, const Tensor& o, const Tensor& expected, const Tensor& selected,
             const Tensor& expected_selected) {
  const std::vector<double> got = to_doubles(o), want = to_doubles(expected);
  std::vector<bool> same(static_cast<size_t>(in.batch * in.heads * in.n), true);
  int64_t flips = 0;
  if (selected) {
    const std::vector<double> a = to_doubles(selected), b = to_doubles(expected_selected);
    const size_t places = a.size() / same.size();
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i] && same[i / places]) same[i / places] = false, ++flips;
  }
  double off = 0;
  for (int64_t b = 0; b < in.batch; ++b)
    for (int64_t r = 0; r < in.n; ++r)
      for (int64_t h = 0; h < in.heads; ++h)
        if (same[static_cast<size_t>((b * in.heads + h) * in.n + r)])
          for (int64_t i = 0; i < in.width; ++i) {
            const auto at = static_cast<size_t>(((b * in.n + r) * in.heads + h) * in.width + i);
            const double d = std::abs(got[at] - want[at]);
            off = std::isfinite(d) ? std::max(off, d) : INFINITY;
          }
  off /= largest(want);
  char what[160];
  std::snprintf(what, sizeof what, "off by %.2g, %lld of %zu queries select otherwise", off, static_cast<long long>(flips), same.size());
  report(name, off <= (dtype == DType::bf16 ? 1e-2 : 2e-5) && flips * 50 <= static_cast<int64_t>(same.size()), what);
}

std::string title(const char* op, DType dtype, const Inputs& in, const std::string& more) {
  return std::string(op) + " " + to_string(dtype) + " d " + std::to_string(in.width) + " at " + std::to_string(in.first) + " n " +
         std::to_string(in.n) + more;
}

void check_ops() {
  size_t place = 0;
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t width : {16, 25, 32, 64, 80, 128, 256}) {
      if (!test::in_shard(place++)) continue;
      for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {63, 1}, {700, 11}, {1700, 1}}) {
        for (const ScoreOptions& score :
             {ScoreOptions{0.3, 0, false}, ScoreOptions{0.3, 0, true}, ScoreOptions{0.3, 0, true, true}, ScoreOptions{0.3, 300, false}}) {
          Inputs in({2, 1800, 3, width}, n, first, dtype);
          const std::string more = (score.released_alibi ? " released alibi"
                                    : score.alibi        ? " alibi"
                                                         : "") +
                                   std::string(score.window ? " window" : "");
          const Tensor o = cached_attention(in.gpu.tape, in.gpu.q, in.gpu.k, in.gpu.v, score, in.gpu.at(first));
          compare(title("attention", dtype, in, more), dtype, in, o,
                  cached_attention(in.cpu.tape, in.cpu.q, in.cpu.k, in.cpu.v, score, {first}), {}, {});
          const CachedElement e = cached_top1_element(in.gpu.tape, in.gpu.q, in.gpu.k, in.gpu.v, score, in.gpu.at(first));
          const CachedElement f = cached_top1_element(in.cpu.tape, in.cpu.q, in.cpu.k, in.cpu.v, score, {first});
          compare(title("element", dtype, in, more), dtype, in, e.o, f.o, e.selected, f.selected);
        }
        if (width != 25 && width != 64) continue;
        for (ChunkSelection selection :
             {ChunkSelection::exact, ChunkSelection::approx, ChunkSelection::oracle_recent, ChunkSelection::random})
          for (const auto& [chunk, top_k, share] : std::vector<std::tuple<int64_t, int64_t, bool>>{
                   {128, 1, false}, {16, 4, true}, {1, 2, false}, {200, 3, false}, {4000, 1, false}}) {
            Inputs in({2, 1800, 3, width}, n, first, dtype);
            const ChunkOptions options{chunk, top_k, share, selection, 5};
            const ScoreOptions score{0.3, 0, selection == ChunkSelection::exact || selection == ChunkSelection::approx};
            const auto run = [&](Inputs::Side& side, const TokenPosition& start, const TokenPosition& position) {
              Tensor means;
              if (keeps_mean_keys(options)) {
                means = side.arena.allocate({2, 1800 / options.chunk, 3, in.width}, side.k.dtype());
                if (in.first > 0) extend_mean_keys(side.tape, side.k, means, options, start, in.first);
                extend_mean_keys(side.tape, side.k, means, options, position, in.n);
                if (side.arena.device().is_cpu() && dtype == DType::bf16) {  // rounded as there
                  Arena rounding(Device::cuda(0));
                  const Tensor rounded = rounding.allocate(means.shape(), dtype);
                  from_doubles(rounded, to_doubles(means));
                  from_doubles(means, to_doubles(rounded));
                }
              }
              return cached_top1_chunk(side.tape, side.q, side.k, side.v, means, score, options, position);
            };
            const CachedChunk o = run(in.gpu, {0}, in.gpu.at(first)), expected = run(in.cpu, {0}, {first});
            compare(title("chunk", dtype, in,
                          " selection " + std::to_string(static_cast<int>(selection)) + " chunk " + std::to_string(chunk) + " top " +
                              std::to_string(top_k)),
                    dtype, in, o.o, expected.o, o.selected, expected.selected);
          }
      }
    }
}

constexpr int64_t kLength = 400, kVocabulary = 97;

/// A model whose weights are larger than initial ones, so that what is read shows.
std::unique_ptr<InferenceModel> model_of(const json& settings, const std::string& precision) {
  json architecture{{"width", 128}, {"layers", 2}};
  if (!is_stack(settings))
    for (const Setting& s : settings_of(settings.at("block"), settings.at("mixer")))
      if (s.name == "heads") architecture["heads"] = 2;
  architecture.update(settings);
  auto model =
      std::make_unique<InferenceModel>(resolve_architecture(architecture, kLength), kVocabulary, kLength, Device::cuda(0), precision, 3);
  std::vector<NamedTensor> weights;
  Arena host(Device::cpu());
  for (const Parameter& p : model->model().parameters()) {
    const Random random(9, p.name);
    std::vector<double> values = to_doubles(p.value);
    for (size_t i = 0; i < values.size(); ++i) values[i] += (p.decay ? 0.1 : 0.05) * random.normal(i);
    weights.push_back({p.name, host.allocate(p.value.shape(), p.value.dtype())});
    from_doubles(weights.back().tensor, values);
  }
  model->load(weights);
  return model;
}

std::vector<double> logits_of_all(InferenceModel& model, const std::vector<int32_t>& tokens) {
  const Tensor x = model.arena().allocate({1, kLength}, DType::i32);
  copy_from_host(x, tokens.data());
  return to_doubles(model.model().logits(model.tape(), x));
}

/// Largest difference of logits behind one token, relative to the largest of all.
double apart(const double* logits, const std::vector<double>& truth, int64_t token) {
  double d = 0;
  for (int64_t i = 0; i < kVocabulary; ++i) {
    const double e = std::abs(logits[i] - truth[static_cast<size_t>(token * kVocabulary + i)]);
    d = std::isfinite(e) ? std::max(d, e) : INFINITY;
  }
  return d / largest(truth);
}

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
  std::vector<int32_t> tokens;
  const Random random(4, "tokens");
  for (uint64_t i = 0; i < kLength; ++i) tokens.push_back(static_cast<int32_t>(random.below(kVocabulary, i)));
  const auto model = model_of(settings, precision);
  const std::vector<double> whole = logits_of_all(*model, tokens);
  const bool bf16 = precision == "bf16", selects = settings.dump().find("top1") != std::string::npos;
  const std::vector<double> truth = bf16 && is_stack(settings) ? logits_of_all(*model_of(settings, "f32"), tokens) : std::vector<double>();
  Decoder decoder(*model, kLength);
  const double tolerance = bf16 ? 5e-2 : 1e-4;
  int64_t pieces = 0, wrong = 0;
  Deviations from_whole, from_truth, of_whole;
  for (int64_t at = 0; at < kLength; ++pieces) {
    const int64_t n = at == 0 ? 130 : pieces % 20 == 19 ? 5 : 1;
    decoder.feed(std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(n, kLength - at))));
    at = decoder.length();
    const std::vector<double> logits = decoder.logits();
    const double d = apart(logits.data(), whole, at - 1);
    from_whole.add(d);
    if (!(d <= tolerance)) ++wrong;
    if (truth.empty()) continue;
    from_truth.add(apart(logits.data(), truth, at - 1));
    of_whole.add(apart(whole.data() + (at - 1) * kVocabulary, truth, at - 1));
  }
  char what[200];
  if (truth.empty()) {
    std::snprintf(what, sizeof what, "off by %.2g, %lld of %lld pieces beyond %.0e", from_whole.most, static_cast<long long>(wrong),
                  static_cast<long long>(pieces), tolerance);
    // In bf16 a choice may fall otherwise where two are as good as equal, and what follows reads that.
    report(settings.dump() + " " + precision, wrong == 0 || (selects && wrong * 20 <= pieces && bf16), what);
  } else {
    const double count = static_cast<double>(pieces);
    std::snprintf(what, sizeof what, "from float32 %.2g on average and %.2g at most, the whole sequence %.2g and %.2g",
                  from_truth.sum / count, from_truth.most, of_whole.sum / count, of_whole.most);
    report(settings.dump() + " " + precision,
           std::isfinite(of_whole.sum) && from_truth.sum <= 2 * of_whole.sum && (selects || from_truth.most <= 2 * of_whole.most), what);
  }
}

/// Sequences of their own lengths side by side, one of which is replaced: logits behind every token against the whole sequences'.
void check_batch(const json& settings, const std::string& precision) {
  static size_t place = 0;
  if (!test::in_shard(place++)) return;
  const auto model = model_of(settings, precision);
  std::vector<std::vector<int32_t>> texts(4);
  std::vector<std::vector<double>> whole;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Random random(20 + i, "tokens");
    for (uint64_t t = 0; t < kLength; ++t) texts[i].push_back(static_cast<int32_t>(random.below(kVocabulary, t)));
    whole.push_back(logits_of_all(*model, texts[i]));
  }
  BatchDecoder decoder(*model, 3, kLength);
  std::vector<size_t> text{0, 1, 2};
  const double tolerance = precision == "bf16" ? 5e-2 : 1e-4;
  const bool selects = settings.dump().find("top1") != std::string::npos;
  Deviations off;
  int64_t count = 0, wrong = 0, likeliest = 0;
  const auto compare_place = [&](int64_t b) {
    const std::vector<double> logits = decoder.logits(b);
    const double d = apart(logits.data(), whole[text[static_cast<size_t>(b)]], decoder.length(b) - 1);
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
  report("side by side " + settings.dump() + " " + precision,
         likeliest == count && (wrong == 0 || (selects && precision == "bf16" && wrong * 20 <= count)), what);
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
    for (const auto& [name, settings] : test::random_stacks(400, 128)) check_model(settings, precision);
}

}  // namespace

int main(int argc, char** argv) {
  test::first_gpu();
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "models") check_ops();
  if (what != "ops") check_models();
  std::printf(failures ? "%d cases FAILED\n" : "all cases pass\n", failures);
  return failures ? 1 : 0;
}

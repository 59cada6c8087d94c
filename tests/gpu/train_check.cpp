// Trains tiny configs on the CPU and on CUDA and compares: loss curves, two runs, resuming, plans, evaluation, probes. Then
// times the presets. Needs a GPU; without one it ends with code 77 (skipped) and says so. Argument: "check", "time",
// "profile" or "seeds" (curves of eight seeds beside the CPU's); without one, check and time. A second argument picks the configs or
// presets whose name holds it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"
#include "models/config/config.h"
#include "models/corpus/corpus.h"
#include "models/optimizers/registry.h"
#include "models/resources.h"
#include "models/tasks/symbol_task.h"
#include "models/training/decoder.h"
#include "models/training/plan.h"
#include "models/training/probe_plan.h"
#include "models/training/run_pace.h"
#include "models/training/trainer.h"
#include "models/training/training_step.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"
#include "tests/support/random_stacks.h"

#ifdef SACCADE_NO_CORPUS  // built by hand, without models/corpus and what it links
namespace saccade {

/// A store without a corpus: a noisy rule that can be learnt.
struct TokenStore::Map {
  std::vector<int32_t> tokens;
};
TokenStore::TokenStore() : map_(std::make_unique<Map>()) {
  const Random random(3, "text");
  int32_t x = 1;
  for (uint64_t i = 0; i < 200000; ++i) {
    x = random.below(8, i) == 0 ? static_cast<int32_t>(random.below(257, i + (1 << 20))) : (x * 5 + 3) % 257;
    map_->tokens.push_back(x);
  }
}
TokenStore::~TokenStore() = default;
int64_t TokenStore::size() const { return static_cast<int64_t>(map_->tokens.size()); }
std::string TokenStore::label() const { return "rule"; }
void TokenStore::read(int64_t begin, std::span<int32_t> tokens) const {
  std::copy_n(map_->tokens.begin() + begin, tokens.size(), tokens.begin());
}
std::shared_ptr<const TokenStore> TokenStore::open(const Corpus&, const std::string&, Split, const Tokenizer&,
                                                   const std::function<void(const std::string&)>&) {
  return std::shared_ptr<const TokenStore>(new TokenStore());
}

}  // namespace saccade
#endif

using namespace saccade;
using nlohmann::json;

namespace {

constexpr int64_t kVocabulary = 257, kSteps = 100;

json small(const json& architecture, const std::string& device, const std::string& precision, int64_t accumulate, bool recompute = false) {
  json a{{"width", 32}, {"layers", 2}};
  if (!is_stack(architecture))
    for (const Setting& s : settings_of(architecture.at("block"), architecture.value("mixer", "")))
      if (s.name == "heads") a["heads"] = 2;
  a.update(architecture);
  return {{"name", "check"},
          {"architecture", a},
          {"data", {{"sequence_length", 64}}},
          {"training",
           {{"batch_tokens", 1024},
            {"gradient_accumulation", accumulate},
            {"activation_checkpointing", recompute},
            {"steps", kSteps},
            {"warmup_steps", 10},
            {"learning_rate", 3e-3}}},
          {"device", device},
          {"precision", precision}};
}

std::shared_ptr<const TokenStore> open_store(const Tokenizer& tokenizer) {
#ifdef SACCADE_NO_CORPUS
  return TokenStore::open({}, "", Split::train, tokenizer);
#else
  const Corpus corpus = Corpus::open("task-copy");
  return TokenStore::open(corpus, corpus.domains().front().name, Split::train, tokenizer);
#endif
}

std::unique_ptr<Trainer> trainer_of(const json& object) {
  const RunConfig config = resolve_config(object, "check");
  if (!config.data.task.empty()) {
    const SymbolDomain domain(symbol_task(config.data.task), config.data.train.front(), "/data/train");
    const auto examples = symbol_sequences(domain, Split::train, config.data.sequence_length);
    return std::make_unique<Trainer>(config, kVocabulary,
                                     std::make_unique<BatchSource>(config.data.sequence_length, std::vector{examples}, uint64_t{1}));
  }
  const auto store = open_store(*make_byte_tokenizer());
  return std::make_unique<Trainer>(config, kVocabulary,
                                   std::make_unique<BatchSource>(std::vector{store}, config.data.sequence_length, uint64_t{1}));
}

FrozenBatch frozen(int64_t sequences, int64_t length) {
  FrozenBatch batch{"rule", {}, {}, sequences, length};
  const Random random(9, "frozen");
  for (int64_t i = 0; i < sequences * length; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(i))));
    batch.targets.push_back(static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(i + 100000))));
  }
  return batch;
}

std::vector<double> train(Trainer& trainer, int64_t steps) {
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

/// Largest relative difference of two curves.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (!(d <= worst) && !std::isnan(worst)) worst = d;
  }
  return worst;
}

/// The index where two curves are furthest apart.
size_t worst_step(const std::vector<double>& a, const std::vector<double>& b) {
  size_t worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) * b[worst] > std::abs(a[worst] - b[worst]) * b[i]) worst = i;
  return worst;
}

bool same_bytes(const TrainingState& a, const TrainingState& b) {
  const auto same = [](const std::vector<NamedTensor>& x, const std::vector<NamedTensor>& y) {
    for (size_t i = 0; i < x.size(); ++i)
      if (std::memcmp(x[i].tensor.raw(), y[i].tensor.raw(), static_cast<size_t>(x[i].tensor.bytes())) != 0) return false;
    return x.size() == y.size();
  };
  for (size_t i = 0; i < a.optimizer.size(); ++i)
    if (i >= b.optimizer.size() || a.optimizer[i].name != b.optimizer[i].name || !same(a.optimizer[i].tensors, b.optimizer[i].tensors))
      return false;
  return a.data_position == b.data_position && same(a.weights, b.weights) && a.optimizer.size() == b.optimizer.size();
}

/// Whether as much was chosen in as many sequences, in all but a 50th, which rounding may change, the same.
bool same_choices(const ProbeRecord& a, const ProbeRecord& b) {
  const auto all = [](const ProbeRecord& record) {
    std::vector<int32_t> values;
    for (const std::vector<ChosenSources>& sequence : record.choices)
      for (const ChosenSources& c : sequence) values.insert(values.end(), c.values.begin(), c.values.end());
    return values;
  };
  const std::vector<int32_t> x = all(a), y = all(b);
  size_t other = 0;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) other += x[i] != y[i];
  return a.choices.size() == b.choices.size() && x.size() == y.size() && 50 * other <= x.size();
}

/// Largest difference of probe statistics of several sequences, relative to the value where that is above one; the number of them in
/// `count`; in `worst_of` which it is.
double statistics_apart(Trainer& a, Trainer& b, size_t& count, std::string& worst_of) {
  ProbeRecord x, y;
  x.maps_wanted = y.maps_wanted = true;
  const FrozenBatch batch = frozen(3, 64);
  a.probe(batch, x);
  b.probe(batch, y);
  count = x.statistics.size() + x.maps.size();
  if (x.statistics.size() != y.statistics.size() || x.maps.size() != y.maps.size()) return INFINITY;
  if (!same_choices(x, y)) {
    worst_of = "what is chosen";
    return INFINITY;
  }
  double worst = 0;
  for (size_t i = 0; i < x.statistics.size(); ++i)
    for (size_t h = 0; h < x.statistics[i].heads.size(); ++h) {
      const double u = x.statistics[i].heads[h], v = y.statistics[i].heads[h];
      if (std::isnan(u) && std::isnan(v)) continue;
      const double d = std::abs(u - v) / std::max(1.0, std::abs(v));
      if (d <= worst || std::isnan(worst)) continue;
      worst = d;
      worst_of = x.statistics[i].name + " of layer " + std::to_string(x.statistics[i].layer) + ", head " + std::to_string(h) + ": " +
                 std::to_string(u) + " for " + std::to_string(v);
    }
  return worst;
}

/// Whether statistics of several sequences in one pass are the mean of those of each alone, and the choices those of each.
bool together_as_alone(Trainer& trainer) {
  constexpr int64_t kSequences = 3, kLength = 64;
  const FrozenBatch batch = frozen(kSequences, kLength);
  ProbeRecord together, joined;
  trainer.probe(batch, together);
  std::vector<ProbeRecord> alone(kSequences);
  for (size_t s = 0; s < kSequences; ++s) {
    const auto row = [&](const std::vector<int32_t>& all) {
      const auto first = all.begin() + static_cast<int64_t>(s) * kLength;
      return std::vector<int32_t>(first, first + kLength);
    };
    trainer.probe({"rule", row(batch.tokens), row(batch.targets), 1, kLength}, alone[s]);
    joined.choices.insert(joined.choices.end(), alone[s].choices.begin(), alone[s].choices.end());
  }
  bool same = same_choices(together, joined);
  for (size_t i = 0; i < together.statistics.size(); ++i)
    for (size_t h = 0; h < together.statistics[i].heads.size(); ++h) {
      double sum = 0, count = 0;
      for (const ProbeRecord& one : alone)
        if (const double value = one.statistics.at(i).heads.at(h); !std::isnan(value)) sum += value, ++count;
      const double mean = together.statistics[i].heads[h];
      same = same && (count > 0 ? std::abs(mean - sum / count) <= 1e-3 * std::max(1.0, std::abs(mean)) : std::isnan(mean));
    }
  return same;
}

/// Bytes that the arena takes at most while statistics and a capture are made as in a run.
int64_t probed_bytes(Trainer& trainer) {
  const RunConfig& config = trainer.config();
  const int64_t length = config.data.sequence_length;
  const FrozenBatch batch = frozen(sequences_in_a_probe(config.training, evaluation_sequences(config.training, length), length), length);
  ProbeRecord statistics, capture;
  statistics.longest_planned = length;
  capture.statistics_wanted = false, capture.maps_wanted = true;
  trainer.arena().reset_peak();
  trainer.probe_later(batch, statistics).make(statistics);
  trainer.probe_later(frozen(1, config.training.capture_tokens), capture).make(capture);
  return trainer.arena().peak_extent();
}

/// Whether what a GPU reports of passes begun one after the other is what it reports of each alone, to the bit and in the same order, and
/// the same of evaluations.
bool same_when_not_waited_for(Trainer& trainer) {
  const std::vector<FrozenBatch> batches{frozen(2, 64), frozen(1, 48), frozen(20, 64)};
  std::vector<ProbeRecord> now(batches.size()), later(batches.size());
  std::vector<LateReports> reports;
  for (size_t i = 0; i < batches.size(); ++i) {
    now[i].maps_wanted = later[i].maps_wanted = true;
    trainer.probe(batches[i], now[i]);
  }
  for (size_t i = 0; i < batches.size(); ++i) reports.push_back(trainer.probe_later(batches[i], later[i]));
  std::thread([&] {
    for (size_t i = 0; i < batches.size(); ++i) reports[i].make(later[i]);
  }).join();
  const auto same_bits = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  bool same = true;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto same_statistic = [&](const HeadStatistic& a, const HeadStatistic& b) {
      return a.name == b.name && a.layer == b.layer && same_bits(a.heads, b.heads);
    };
    const auto same_map = [&](const CapturedMap& a, const CapturedMap& b) {
      return a.kind == b.kind && a.layer == b.layer && a.shape == b.shape && same_bits(a.values, b.values);
    };
    const ProbeRecord &a = now[i], &b = later[i];
    same = same && std::equal(a.statistics.begin(), a.statistics.end(), b.statistics.begin(), b.statistics.end(), same_statistic) &&
           std::equal(a.maps.begin(), a.maps.end(), b.maps.begin(), b.maps.end(), same_map) && a.choices == b.choices &&
           a.selections == b.selections;
  }
  const std::vector<Evaluation> together = trainer.evaluate(batches);
  for (size_t i = 0; i < batches.size(); ++i) same = same && together[i].by_position == trainer.evaluate(batches[i]).by_position;
  return same;
}

/// Copies of the state that live while training goes on hold the state of their own step, in memory that is taken again when they have
/// ended.
bool check_copies() {
  const json object = small({{"block", "llama"}, {"mixer", "attention"}}, "cuda", "bf16", 2);
  const auto trained = [&](int64_t steps) {
    const auto trainer = trainer_of(object);
    train(*trainer, steps);
    return trainer->copied_state();
  };
  std::string problems;
  try {
    const auto trainer = trainer_of(object);
    trainer->prepare_copies();
    train(*trainer, 20);
    const void* memory = trainer->copied_state().weights.front().tensor.raw();
    const TrainingState first = trainer->copied_state();
    if (first.weights.front().tensor.raw() != memory) problems += " memory of a copy that has ended is not taken again;";
    train(*trainer, 10);
    const TrainingState second = trainer->copied_state();
    train(*trainer, 20);
    if (!same_bytes(first, trained(20)) || !same_bytes(second, trained(30))) problems += " a copy is not of its step;";
    trainer->restore(second);
    train(*trainer, 10);
    if (!same_bytes(trainer->state(), trained(40))) problems += " a run that goes on from a copy differs;";
  } catch (const std::exception& error) {
    problems += " " + std::string(error.what()).substr(0, 200);
  }
  std::printf("copies of the state: %s%s\n", problems.empty() ? "ok" : "FAILED:", problems.c_str());
  return problems.empty();
}

/// On an inference model with the trainer's weights.
double evaluation_of_weights(Trainer& trainer) {
  const RunConfig& config = trainer.config();
  InferenceModel model(config.architecture, kVocabulary, config.data.sequence_length, trainer.device(), config.precision, 5);
  model.load(trainer.state().weights);
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(config.training));
  return pass.evaluate(frozen(20, 64)).loss;
}

/// `auto` takes the GPU in one plan; the CPU where the precision is not CUDA's, in one too; and in a second plan where the engine
/// refuses an op.
bool check_auto() {
  const auto chosen = [](const json& architecture, const char* precision, int64_t plans) {
    const int64_t before = plans_made();
    const Plan plan = make_plan(resolve_config(small(architecture, "auto", precision, 1), "check"), kVocabulary);
    std::printf("auto, %s: %s%s%s\n", precision, plan.device.c_str(), plan.why_not_gpu.empty() ? "" : ", ", plan.why_not_gpu.c_str());
    return plans_made() - before == plans && plan.where ? plan : Plan{};
  };
  const json plain{{"block", "llama"}, {"mixer", "attention"}}, wide{{"block", "rwkv"}, {"mixer", "rwkv6"}, {"width", 512}, {"heads", 1}};
  const Plan gpu = chosen(plain, "auto", 1), precise = chosen(plain, "f64", 1), refused = chosen(wide, "auto", 2);
  return gpu.where && gpu.where->is_cuda() && gpu.why_not_gpu.empty() && precise.where == Device::cpu() && !precise.why_not_gpu.empty() &&
         refused.where == Device::cpu() && refused.why_not_gpu.find("[wkv]") != std::string::npos;
}

/// Without kernels of our own for tensor cores while it lives.
struct Plainly {
  explicit Plainly(bool on) { set_plain_kernels(on); }
  ~Plainly() { set_plain_kernels(false); }
  Plainly(const Plainly&) = delete;
  Plainly& operator=(const Plainly&) = delete;
};

struct StepFrom {
  double loss = 0, next_loss = 0;  ///< next: of the step after it
  std::vector<std::vector<double>> gradients;
};

/// The step that follows a state.
StepFrom step_from(const TrainingState& state, const json& architecture, const char* precision, bool plain) {
  const Plainly plainly(plain);
  const auto trainer = trainer_of(small(architecture, "cuda", precision, 2));
  trainer->restore(state);
  StepFrom step{trainer->step().loss, 0, {}};
  for (const NamedTensor& tensor : trainer->gradients()) step.gradients.push_back(to_doubles(tensor.tensor));
  step.next_loss = trainer->step().loss;
  return step;
}

double squares_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return squares;
}

/// |a − b| / |b| of all gradients as one vector.
double gradients_apart(const StepFrom& a, const StepFrom& b) {
  double off = 0, size = 0;
  for (size_t i = 0; i < b.gradients.size(); ++i) {
    off += squares_of_difference(a.gradients[i], b.gradients[i]);
    size += squares_of_difference(b.gradients[i], std::vector<double>(b.gradients[i].size()));
  }
  return std::sqrt(off / size);
}

/// Whether the steps on the way to where a run in bf16 is furthest from float32 are right: each computed from the same weights in float32,
/// by the plain kernels and by those that train. Losses within 0.002 of each other, and the gradient (of all weights as one vector) at most
/// twice as far from that in float32 as the plain kernels' one. A model that turns on roundings leaves the curve and passes, a kernel that
/// is wrong does not.
bool steps_are_right(const json& architecture, size_t furthest) {
  bool right = true;
  auto trainer = trainer_of(small(architecture, "cuda", "bf16", 2));
  size_t at = 0;
  for (const size_t back : {20, 5, 1, 0}) {
    if (furthest < back) continue;
    train(*trainer, static_cast<int64_t>(furthest - back - at));
    at = furthest - back;
    const TrainingState state = trainer->copied_state();
    const StepFrom truth = step_from(state, architecture, "f32", false), plain = step_from(state, architecture, "bf16", true),
                   fast = step_from(state, architecture, "bf16", false);
    const double off = gradients_apart(fast, truth), plainly = gradients_apart(plain, truth);
    std::printf(
        "    step %zu: loss in float32 %.4f, plain %.4f, bf16 %.4f; gradient off by %.1e plainly, %.1e; next loss %.4f, %.4f, %.4f\n",
        at + 1, truth.loss, plain.loss, fast.loss, plainly, off, truth.next_loss, plain.next_loss, fast.next_loss);
    right = right && std::abs(fast.loss - truth.loss) <= 0.002 * truth.loss && off <= 2 * plainly;
  }
  return right;
}

bool check(const std::string& name, const json& architecture) {
  std::string problems;
  const auto expect = [&](bool ok, const std::string& problem) {
    if (!ok) problems += " " + problem + ";";
  };
  double f32 = NAN, bf16 = NAN, evaluation = NAN, statistics = NAN;
  size_t count = 0;
  std::string worst_statistic;
  try {
    auto cpu = trainer_of(small(architecture, "cpu", "f32", 2)), gpu = trainer_of(small(architecture, "cuda", "f32", 2));
    const Plan plan = make_plan(gpu->config(), kVocabulary);
    statistics = statistics_apart(*gpu, *cpu, count, worst_statistic);
    expect(statistics <= 1e-3, "probes differ, " + worst_statistic);
    const bool draws = architecture.dump().find("\"random\"") != std::string::npos;  // by the place in the batch
    expect(draws || together_as_alone(*gpu), "statistics of a batch are not the mean of those of its sequences");
    const int64_t probed = probed_bytes(*gpu);
    expect(probed == plan.probe_bytes, "planned " + std::to_string(plan.probe_bytes) + " bytes of probes, used " + std::to_string(probed));
    expect(same_when_not_waited_for(*gpu), "probes or evaluations that are not waited for differ");
    for (int i = 0; i < 3; ++i) evaluation = gpu->evaluate(frozen(20, 64)).loss;  // the third time replayed
    evaluation = std::abs(evaluation - cpu->evaluate(frozen(20, 64)).loss);
    expect(evaluation <= 1e-4, "evaluation");
    expect(std::abs(evaluation_of_weights(*gpu) - gpu->evaluate(frozen(20, 64)).loss) <= 1e-5, "evaluation of the weights alone");
    gpu->arena().reset_peak();
    const std::vector<double> truth = train(*cpu, kSteps);
    const std::vector<double> losses = train(*gpu, kSteps);
    auto gpu_again = trainer_of(small(architecture, "cuda", "f32", 2));
    train(*gpu_again, kSteps);
    expect(same_bytes(gpu_again->state(), gpu->state()), "two f32 runs differ");
    f32 = apart(losses, truth);
    expect(f32 <= 1e-2, "f32 curve (" + std::to_string(losses[0]) + " to " + std::to_string(losses.back()) + ", CPU " +
                            std::to_string(truth[0]) + " to " + std::to_string(truth.back()) + ")");
    expect(gpu->arena().peak_extent() == plan.peak_bytes,
           "planned " + std::to_string(plan.peak_bytes) + " bytes, used " + std::to_string(gpu->arena().peak_extent()));
    auto mixed = trainer_of(small(architecture, "cuda", "auto", 2)), again = trainer_of(small(architecture, "cuda", "bf16", 2)),
         resumed = trainer_of(small(architecture, "cuda", "bf16", 2));
    const std::vector<double> in_bf16 = train(*mixed, kSteps);
    bf16 = apart(in_bf16, truth);
    if (!(bf16 <= 0.1)) {  // a model may turn on roundings: then its steps are right all the same
      const size_t worst = worst_step(in_bf16, truth);
      expect(steps_are_right(architecture, worst), "bf16 curve and steps, furthest at step " + std::to_string(worst + 1) + ": " +
                                                       std::to_string(in_bf16[worst]) + " for " + std::to_string(truth[worst]));
    }
    train(*again, kSteps / 2);
    again->evaluate(frozen(3, 64));
    resumed->restore(again->state());
    train(*again, kSteps / 2);
    train(*resumed, kSteps / 2);
    expect(same_bytes(mixed->state(), again->state()), "two runs differ");
    expect(same_bytes(resumed->state(), again->state()), "a resumed run differs");
    cuda::CapturedGraph::set_enabled(false);
    auto plain = trainer_of(small(architecture, "cuda", "bf16", 2));
    train(*plain, kSteps);
    cuda::CapturedGraph::set_enabled(true);
    expect(same_bytes(plain->state(), again->state()), "captured and plain steps differ");
    auto recomputed = trainer_of(small(architecture, "cuda", "bf16", 2, true));
    train(*recomputed, kSteps);
    expect(same_bytes(recomputed->state(), again->state()), "recomputing blocks changes the run");
    expect(recomputed->arena().peak_extent() == make_plan(recomputed->config(), kVocabulary).peak_bytes, "plan of the recomputing run");
  } catch (const std::exception& error) {
    cuda::CapturedGraph::set_enabled(true);
    problems += " " + std::string(error.what()).substr(0, 200);
  }
  std::printf("%-28s %8.1e %8.1e %8.1e %8.1e %4zu  %s%s\n", name.c_str(), f32, bf16, evaluation, statistics, count,
              problems.empty() ? "ok" : "FAILED:", problems.c_str());
  std::fflush(stdout);
  return problems.empty();
}

/// How far curves of other initial weights leave those of the CPU in float32, with the kernels for tensor cores and without: one seed tells
/// a kernel that is wrong not from a model that turns on roundings, several do.
void print_seeds(const std::string& name, const json& architecture) {
  std::printf("%-28s %4s %8s %8s %8s  %s\n", name.c_str(), "seed", "f32", "plain", "bf16", "step and losses where bf16 is furthest");
  for (int64_t seed = 1; seed <= 8; ++seed) {
    const auto curve = [&](const char* device, const char* precision, bool plain) {
      const Plainly plainly(plain);
      json object = small(architecture, device, precision, 2);
      object["training"]["seed"] = seed;
      return train(*trainer_of(object), kSteps);
    };
    const std::vector<double> truth = curve("cpu", "f32", false), f32 = curve("cuda", "f32", false), plain = curve("cuda", "bf16", true),
                              fast = curve("cuda", "bf16", false);
    const size_t at = worst_step(fast, truth);
    std::printf("%-28s %4ld %8.1e %8.1e %8.1e  %zu: CPU %.4f, f32 %.4f, plain %.4f, bf16 %.4f; last %.4f, %.4f, %.4f, %.4f\n", "", seed,
                apart(f32, truth), apart(plain, truth), apart(fast, truth), at + 1, truth[at], f32[at], plain[at], fast[at], truth.back(),
                f32.back(), plain.back(), fast.back());
    std::fflush(stdout);
  }
}

/// Of answers, where it is trained on a task; else 0.
double loss_of_answers(Trainer& trainer) {
  const DataConfig& data = trainer.config().data;
  if (data.task.empty()) return 0;
  return trainer.evaluate(task_batch(data.task, data.train.front(), {Split::validation, 0, 40})).loss;
}

/// Every optimizer, batches that grow, and a task's few targets: near the CPU's curve, the same bytes twice, resumed and without captured
/// graphs, as much memory as planned.
bool check_training(const json& training, const json& data = json::object()) {
  const auto make = [&](const char* device, const char* precision) {
    json object = small({{"block", "llama"}, {"mixer", "attention"}, {"tied", false}}, device, precision, 2);
    object["training"].update(training);
    object["data"].update(data);
    return trainer_of(object);
  };
  std::string problems;
  double curve = NAN;
  try {
    auto cpu = make("cpu", "f32"), once = make("cuda", "bf16"), again = make("cuda", "bf16"), resumed = make("cuda", "bf16");
    curve = apart(train(*once, kSteps), train(*cpu, kSteps));
    if (!(curve <= 0.1)) problems += " curve;";
    train(*again, kSteps / 2);
    resumed->restore(again->state());
    train(*again, kSteps / 2);
    train(*resumed, kSteps / 2);
    if (!same_bytes(once->state(), again->state())) problems += " two runs differ;";
    if (!same_bytes(resumed->state(), again->state())) problems += " a resumed run differs;";
    const double loss = loss_of_answers(*again);
    if (!(std::abs(loss - loss_of_answers(*cpu)) <= 0.1 * std::abs(loss))) problems += " evaluation;";
    if (again->arena().peak_extent() != make_plan(again->config(), kVocabulary).peak_bytes) problems += " plan;";
    cuda::CapturedGraph::set_enabled(false);
    auto plain = make("cuda", "bf16");
    train(*plain, kSteps);
    if (!same_bytes(plain->state(), again->state())) problems += " captured and plain steps differ;";
    if (loss_of_answers(*plain) != loss) problems += " captured and plain evaluations differ;";
  } catch (const std::exception& error) {
    problems += " " + std::string(error.what()).substr(0, 200);
  }
  cuda::CapturedGraph::set_enabled(true);
  std::printf("%-60s %8.1e  %s%s\n", (data.empty() ? training : data).dump().c_str(), curve,
              problems.empty() ? "ok" : "FAILED:", problems.c_str());
  return problems.empty();
}

/// Every whole architecture and every mixer in every block as the registry has them, settings that take other ways, and hybrid stacks.
std::vector<std::pair<std::string, json>> all_configs() {
  std::vector<std::pair<std::string, json>> configs;
  const auto add = [&](const std::string& block, const std::string& mixer) {
    json config{{"block", block}};
    if (!mixer.empty()) config["mixer"] = mixer;
    for (const Setting& s : settings_of(block, mixer))
      for (const auto& [name, value] : {std::pair("split", 16), std::pair("top_k", 2), std::pair("chunk", 16)})
        if (s.name == name) config[name] = value;
    configs.emplace_back(block + (mixer.empty() ? "" : ", " + mixer), config);
  };
  for (const Architecture* block : architectures()) {
    if (block->kind == Architecture::Kind::whole) add(block->id, "");
    if (block->kind != Architecture::Kind::block) continue;
    for (const Architecture* mixer : architectures())
      if (mixer->kind == Architecture::Kind::mixer) add(block->id, mixer->id);
  }
  const std::pair<const char*, json> more[] = {
      {"avey causal, masked, layer",
       {{"block", "avey"}, {"split", 16}, {"top_k", 2}, {"ranker_query", "causal"}, {"mask_padding", true}, {"norm", "layer"}}},
      {"avey gelu, no ranker", {{"block", "avey"}, {"ranker", false}, {"enricher_activation", "gelu"}, {"bypass", false}}},
      {"avey with attention",
       {{"block", "avey"}, {"split", 16}, {"top_k", 2}, {"processor", "attention"}, {"heads", 2}, {"position", "rotary"}}},
      {"gpt, attention window 16", {{"block", "gpt"}, {"mixer", "attention"}, {"window", 16}}},
      {"llama, constant keys", {{"block", "llama"}, {"mixer", "attention"}, {"relation", "constant-keys"}}},
      {"llama, constant both", {{"block", "llama"}, {"mixer", "attention"}, {"relation", "constant-both"}}},
      {"llama, top1_chunk approx", {{"block", "llama"}, {"mixer", "top1_chunk"}, {"chunk", 16}, {"selection", "approx"}}},
  };
  configs.insert(configs.end(), std::begin(more), std::end(more));
  const auto stacks = test::random_stacks(64, 32);
  configs.insert(configs.end(), stacks.begin(), stacks.end());
  return configs;
}

/// The ops of a step that take longest, each waited for.
void profile_step(const RunConfig& config, int64_t vocabulary) {
  cuda::CapturedGraph::set_enabled(false);
  TrainingStep step(config, vocabulary, parse_device("cuda"));
  const auto run = [&](int64_t number) {
    for (auto tokens : {step.tokens(), step.targets()})
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(vocabulary));
    step.begin();
    step.forward_backward();
    step.gradient_norm();
    step.update(1e-4, number);
  };
  run(1);
  step.tape().set_profiling(true);
  run(2);
  std::vector<std::pair<double, std::string>> ops;
  for (const auto& [name, time] : step.tape().profile()) ops.emplace_back(time.seconds, name);
  std::sort(ops.rbegin(), ops.rend());
  for (size_t i = 0; i < std::min<size_t>(ops.size(), 24); ++i) {
    const Tape::OpTime& time = step.tape().profile().at(ops[i].second);
    std::printf("    %-36s %4ld calls %8.3f ms %7.1f TFLOP/s %7.2f TB/s\n", ops[i].second.c_str(), time.calls, ops[i].first * 1e3,
                time.cost.flops / ops[i].first / 1e12, time.cost.bytes / ops[i].first / 1e12);
  }
  cuda::CapturedGraph::set_enabled(true);
}

/// Median seconds of a step of a preset, after the recording.
void time_step(const char* name, const json& architecture, int64_t vocabulary, int64_t length, int64_t batch, const char* precision,
               bool profile) {
  try {
    const RunConfig config = resolve_config({{"name", name},
                                             {"architecture", architecture},
                                             {"data", {{"sequence_length", length}}},
                                             {"training", {{"batch_tokens", batch * length}}},
                                             {"device", "cuda"},
                                             {"precision", precision}},
                                            name);
    const Plan plan = make_plan(config, vocabulary);
    const double seconds = measure_pace(config, plan).step;
    const double tokens = static_cast<double>(batch * length);
    std::printf("%-24s %-5s %9.3f ms %8.3f Mtok/s %7.1f TFLOP/s  %7.2f GiB  %.1f M\n", name, precision, seconds * 1e3,
                tokens / seconds / 1e6, plan.flops_per_step / seconds / 1e12, static_cast<double>(plan.peak_bytes) / (1 << 30),
                static_cast<double>(plan.parameters) / 1e6);
    if (profile) profile_step(config, vocabulary);
  } catch (const std::exception& error) {
    std::printf("%-24s FAILED: %.200s\n", name, error.what());
  }
}

json architecture_of_preset(const std::string& name) {
  std::ifstream file(resource_folder() / "presets" / (name + ".json"));
  return json::parse(file).at("architecture");
}

void time_presets(bool profile, const std::string& only) {
  const auto time_step = [&](const char* name, const json& architecture, int64_t vocabulary, int64_t length, int64_t batch) {
    if (std::string(name).find(only) != std::string::npos) ::time_step(name, architecture, vocabulary, length, batch, "bf16", profile);
  };
  const auto llama = [](int64_t width, int64_t layers, int64_t heads, int64_t mlp) {
    return json{{"block", "llama"}, {"mixer", "attention"}, {"width", width}, {"layers", layers}, {"heads", heads}, {"mlp_width", mlp}};
  };
  const json avey_small{{"block", "avey"}, {"width", 256}, {"layers", 8}, {"split", 32}, {"top_k", 3}};
  const json avey_large{{"block", "avey"}, {"width", 768}, {"layers", 26}, {"split", 64}, {"top_k", 7}};
  time_step("Transformer++ 1.87 M", llama(192, 4, 3, 512), 512, 512, 32);
  time_step("Transformer++ 8.75 M", llama(320, 6, 5, 864), 4096, 1024, 32);
  time_step("Transformer++ 110 M", llama(768, 12, 12, 2048), 32000, 2048, 32);
  time_step("Avey 4.9 M", avey_small, 4096, 512, 32);
  time_step("Avey 153 M", avey_large, 50304, 512, 32);
  for (const char* id : {"mamba1", "mamba2", "rwkv5", "rwkv6", "rwkv7", "deltanet", "gated-deltanet", "based"})
    time_step(id, architecture_of_preset(id + std::string("-paper-small")), 32000, 2048, 8);
}

}  // namespace

int main(int argc, char** argv) {
  test::first_gpu();
  const std::string wanted = argc > 1 ? argv[1] : "both", only = argc > 2 ? argv[2] : "";
  int failed = 0;
  if (wanted == "seeds") {
    for (const auto& [name, architecture] : all_configs())
      if (name.find(only) != std::string::npos) print_seeds(name, architecture);
    return 0;
  }
  if (wanted != "time" && wanted != "profile") {
    std::printf("%-28s %8s %8s %8s %8s %4s\n", "", "f32", "bf16", "eval", "probe", "");
    const auto configs = all_configs();
    if (test::in_shard(0) && !check_auto()) {
      std::printf("auto: FAILED\n");
      ++failed;
    }
    if (test::in_shard(0) && only.empty()) {
      failed += check_copies() ? 0 : 1;
      std::vector<json> trainings{{{"gradient_accumulation", 4}, {"batch_warmup_tokens", 256}, {"batch_warmup_steps", 12}}};
      for (const OptimizerEntry* entry : optimizers()) trainings.push_back({{"optimizer", entry->id}});
      for (const json& training : trainings) failed += check_training(training) ? 0 : 1;
      for (const char* domain : {"length-64-pairs-4-vocabulary-256", "length-64-pairs-16-vocabulary-256"})
        failed += check_training(json::object(), {{"task", "mqar"}, {"train", {domain}}, {"ood", json::array()}}) ? 0 : 1;
    }
    for (size_t i = 0; i < configs.size(); ++i)
      if (test::in_shard(i) && configs[i].first.find(only) != std::string::npos)
        failed += check(configs[i].first, configs[i].second) ? 0 : 1;
    std::printf("%d of %zu configs failed\n", failed, configs.size());
  }
  if (wanted != "check") time_presets(wanted == "profile", only);
  return failed == 0 ? 0 : 1;
}

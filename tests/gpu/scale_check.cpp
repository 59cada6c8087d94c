// Models of the sizes that users train, on real text: what checks of single ops and tiny models do not reach. Needs a GPU; without one it
// ends with code 77 (skipped) and says so.
//
//   scale_check                  all of it
//   scale_check step [NAME]      gradients of one step, tensor by tensor
//   scale_check run [NAME [SEEDS]]   many steps; of several seeds, whose mean is judged
//
// NAME picks the systems whose name holds it, and SACCADE_TEST_SHARD=k/n every n-th. Text: SACCADE_SCALE_CORPUS (a corpus; local-text by
// default) and SACCADE_SCALE_DOMAIN (its first domain by default). SACCADE_TEST_VERBOSE lists every tensor.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/engine/captured_graph.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/transfer.h"
#include "models/config/config.h"
#include "models/corpus/corpus.h"
#include "models/resources.h"
#include "models/training/trainer.h"
#include "models/training/training_step.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"

using namespace saccade;
using nlohmann::json;

namespace {

constexpr int64_t kStepTokens = 32768;  ///< of a training step of docs/tuned-10m.md

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// Real text in the pieces that the models read.
class Text {
 public:
  Text() : corpus_(Corpus::open(environment("SACCADE_SCALE_CORPUS", "local-text"))) {
    domain_ = environment("SACCADE_SCALE_DOMAIN", corpus_.domains().front().name);
    tokenizer_ = open_tokenizer("bpe:4096", corpus_, {domain_});
    store_ = TokenStore::open(corpus_, domain_, Split::train, *tokenizer_);
  }
  int64_t vocabulary() const { return tokenizer_->vocabulary(); }
  std::unique_ptr<BatchSource> batches(int64_t length) const {
    return std::make_unique<BatchSource>(std::vector{store_}, length, uint64_t{1});
  }

 private:
  Corpus corpus_;
  std::string domain_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const TokenStore> store_;
};

struct System {
  std::string name;
  json architecture;
};

json read_preset(const std::string& name) {
  std::ifstream file(resource_folder() / "presets" / (name + ".json"));
  return json::parse(file);
}
json architecture_of_preset(const std::string& name) { return read_preset(name).at("architecture"); }

System system_of(const std::string& preset, const std::string& name, const json& settings) {
  json architecture = architecture_of_preset(preset);
  architecture.update(settings);
  return {name, architecture};
}

/// Settings that take other kernels, at the sizes of the 10m presets.
std::vector<System> variants() {
  return {system_of("transformer-pp-10m", "transformer-pp, heads of 32", {{"heads", 10}}),
          system_of("transformer-pp-10m", "transformer-pp, window 64", {{"window", 64}}),
          system_of("top1-chunk-exact-10m", "top1-chunk-exact, chunks of 32", {{"chunk", 32}}),
          system_of("top1-chunk-approx-10m", "top1-chunk-approx, chunks of 32", {{"chunk", 32}}),
          system_of("avey-10m", "avey, splits of 32, k 3", {{"split", 32}, {"top_k", 3}}),
          system_of("avey-10m", "avey, causal, masked", {{"ranker_query", "causal"}, {"mask_padding", true}}),
          system_of("avey-10m", "avey with attention", {{"processor", "attention"}, {"heads", 4}, {"position", "rotary"}})};
}

/// Every preset of a size that trains on text, under the name of its system; those of generated tasks are some of the same models.
std::vector<System> systems(const std::string& size) {
  std::vector<System> all;
  for (const auto& entry : std::filesystem::directory_iterator(resource_folder() / "presets")) {
    const std::string stem = entry.path().stem().string(), ending = "-" + size;
    if (stem.size() <= ending.size() || stem.compare(stem.size() - ending.size(), ending.size(), ending) != 0) continue;
    if (const json preset = read_preset(stem); !preset.at("data").contains("task"))
      all.push_back({stem.substr(0, stem.size() - ending.size()), preset.at("architecture")});
  }
  std::sort(all.begin(), all.end(), [](const System& a, const System& b) { return a.name < b.name; });
  return all;
}

/// How a step is computed.
struct Way {
  const char* device;
  const char* precision;
  bool plain = false;
};

RunConfig config_of(const System& system, int64_t length, int64_t batch_tokens, const Way& way, int64_t steps = 1, int64_t seed = 1) {
  return resolve_config({{"name", system.name},
                         {"architecture", system.architecture},
                         {"data", {{"sequence_length", length}}},
                         {"training",
                          {{"batch_tokens", batch_tokens},
                           {"steps", steps},
                           {"warmup_steps", std::min<int64_t>(steps - 1, 50)},
                           {"learning_rate", 1e-3},
                           {"seed", seed}}},
                         {"device", way.device},
                         {"precision", way.precision}},
                        system.name);
}

/// Plain kernels while it lives, if they are asked for.
class Plainly {
 public:
  explicit Plainly(const Way& way) { set_plain_kernels(way.plain); }
  ~Plainly() { set_plain_kernels(false); }
  Plainly(const Plainly&) = delete;
  Plainly& operator=(const Plainly&) = delete;
};

struct Gradients {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
};

using Values = std::vector<std::vector<double>>;

/// Weights after some steps: what begins at zero no longer hides the gradients behind it.
Values some_steps_on(const System& system, const Text& text, int64_t length) {
  constexpr int64_t kWarm = 30, kTokens = 8192;
  Trainer trainer(config_of(system, length, kTokens, {"cuda", "f32"}, kWarm), text.vocabulary(), text.batches(length));
  for (int64_t i = 0; i < kWarm; ++i) trainer.step();
  Values weights;
  for (const NamedTensor& weight : trainer.state().weights) weights.push_back(to_doubles(weight.tensor));
  return weights;
}

/// Loss and gradients of one step from given weights.
Gradients step_gradients(const System& system, const Text& text, const Values& weights, int64_t length, int64_t sequences, const Way& way) {
  const Plainly plainly(way);
  const RunConfig config = config_of(system, length, sequences * length, way);
  TrainingStep step(config, text.vocabulary(), parse_device(way.device));
  for (size_t i = 0; i < weights.size(); ++i) from_doubles(step.slots()[i].value, weights[i]);
  step.refresh_copies();
  text.batches(length)->next(sequences, step.tokens(), step.targets());
  step.begin();
  step.forward_backward();
  step.gradient_norm();
  Gradients g{step.measures().loss, {}, {}};
  for (size_t i = 0; i < step.slots().size(); ++i) {
    g.names.push_back(step.model().parameters()[i].name);
    g.values.push_back(to_doubles(step.slots()[i].grad));
  }
  return g;
}

double norm(const std::vector<double>& x) {
  double squares = 0;
  for (double v : x) squares += v * v;
  return std::sqrt(squares);
}

/// ‖a − b‖ / ‖b‖ of every tensor, and the largest. A gradient that is zero but for rounding (a bias of keys under softmax) counts as
/// kLeastShare of all gradients together.
constexpr double kLeastShare = 1e-4;
struct Apart {
  double loss = 0, worst = 0;
  size_t where = 0;
  std::vector<double> tensors;
};
Apart apart(const Gradients& a, const Gradients& truth) {
  Apart result{std::abs(a.loss - truth.loss), 0, 0, {}};
  double all = 0;
  for (const auto& values : truth.values) all = std::hypot(all, norm(values));
  for (size_t i = 0; i < truth.values.size(); ++i) {
    std::vector<double> difference = a.values[i];
    for (size_t j = 0; j < difference.size(); ++j) difference[j] -= truth.values[i][j];
    result.tensors.push_back(norm(difference) / std::max(norm(truth.values[i]), kLeastShare * all));
    if (!(result.tensors[i] <= result.worst) && !std::isnan(result.worst)) result.worst = result.tensors[i], result.where = i;
  }
  return result;
}

/// What is allowed. In bf16 twice what an independent computation in bf16 reaches: for Transformer++ and Avey PyTorch under autocast
/// (tests/bench/same_tokens/autocast_limits.py, docs/scale-check.md), for others the plain kernels in the same row. A model that selects
/// moves to another token or chunk where two scores are nearly equal; then its gradients part by much more than rounding, in every
/// computation. kPlain and kLoss (nats) are no such limits: they keep a row from passing where the plain kernels are wrong, too.
constexpr double kLimitF32 = 1e-4, kTransformer = 0.020, kAvey = 0.046, kPlain = 0.25, kLoss = 2e-3;

bool selects(const System& system) { return system.architecture.value("mixer", "").starts_with("top1"); }
double limit_of(const System& system, double plain) {
  if (system.name.starts_with("transformer-pp")) return kTransformer;
  if (system.name.starts_with("avey")) return kAvey;
  return 2 * std::max(plain, kTransformer / 2);
}

/// A row of the table: what is off, and where most.
bool print_row(const System& system, int64_t length, int64_t sequences, const Gradients& of, const Apart& f32, const Apart& plain,
               const Apart& bf16) {
  const double limit = limit_of(system, plain.worst);
  const bool gradients =
      bf16.worst <= limit && (selects(system) ? std::isfinite(f32.worst) : f32.worst <= kLimitF32 && plain.worst <= kPlain);
  const bool ok = gradients && f32.loss <= kLoss && plain.loss <= kLoss && bf16.loss <= kLoss;
  std::printf("%-34s %5ld %4ld %8.1e %8.1e %8.1e %8.1e %8.1e  %-28s %s\n", system.name.c_str(), length, sequences, f32.worst, plain.worst,
              bf16.worst, limit, bf16.loss, of.names[bf16.where].c_str(), ok ? "ok" : "FAILED");
  if (std::getenv("SACCADE_TEST_VERBOSE"))
    for (size_t i = 0; i < of.names.size(); ++i)
      std::printf("    %-32s %9.1e %9.1e %9.1e %9.1e\n", of.names[i].c_str(), norm(of.values[i]), f32.tensors[i], plain.tensors[i],
                  bf16.tensors[i]);
  std::fflush(stdout);
  return ok;
}

/// A few sequences against the CPU in double; then as many as a training step has against float32 computed plainly, which the few hold
/// to the CPU.
int check_step(const System& system, const Text& text, int64_t length, int64_t few, int64_t many) {
  const Values weights = some_steps_on(system, text, length);
  const auto of = [&](int64_t sequences, const Way& way) { return step_gradients(system, text, weights, length, sequences, way); };
  int failed = 0;
  for (const int64_t sequences : {few, many}) {
    if (sequences == 0) continue;
    const bool on_cpu = sequences == few;
    const Gradients truth = of(sequences, on_cpu ? Way{"cpu", "f64"} : Way{"cuda", "f32", true});
    const Apart f32 = apart(of(sequences, {"cuda", "f32"}), truth), plain = apart(of(sequences, {"cuda", "bf16", true}), truth),
                bf16 = apart(of(sequences, {"cuda", "bf16"}), truth);
    failed += print_row(system, length, sequences, truth, f32, plain, bf16) ? 0 : 1;
    if (!on_cpu || selects(system)) continue;
    const Apart plain_f32 = apart(of(sequences, {"cuda", "f32", true}), truth);
    if (!(plain_f32.worst <= kLimitF32)) ++failed, std::printf("    FAILED: float32 computed plainly is off by %.1e\n", plain_f32.worst);
  }
  return failed;
}

/// The widths of the papers' small models, with two layers.
System shallow(System system) {
  system.name += ", small";
  system.architecture["layers"] = 2;
  return system;
}

int check_steps(const Text& text, const std::string& only) {
  std::printf("Gradients of one step: largest of |difference| / |gradient| over the tensors.\n%-34s %5s %4s %8s %8s %8s %8s %8s  %s\n", "",
              "T", "seqs", "f32", "plain", "bf16", "allowed", "loss", "where");
  int failed = 0;
  size_t index = 0;
  const auto check = [&](const System& system, int64_t length, int64_t few, int64_t many) {
    if (system.name.find(only) == std::string::npos || !test::in_shard(index++)) return;
    try {
      failed += check_step(system, text, length, few, many);
    } catch (const std::exception& error) {
      ++failed, std::printf("%-34s %5ld FAILED: %.200s\n", system.name.c_str(), length, error.what());
    }
  };
  for (const System& system : systems("10m"))
    for (const auto& [length, few] : {std::pair<int64_t, int64_t>{512, 2}, {2048, 1}}) check(system, length, few, kStepTokens / length);
  for (const System& system : variants()) check(system, 512, 2, kStepTokens / 512);
  for (const System& system : systems("paper-small")) check(shallow(system), 2048, 1, 0);
  for (const System& system : systems("paper-long"))
    if (system.name.starts_with("rwkv-")) check(shallow(system), 2048, 1, 0);  // the RWKV block around other mixers
  return failed;
}

constexpr int64_t kSteps = 200, kSequences = 64, kLength = 512;

/// Training losses, and the state behind the last step.
struct Run {
  std::vector<double> losses;
  TrainingState state;
  double end() const {  ///< mean over the last 20 steps
    double sum = 0;
    for (size_t i = losses.size() - 20; i < losses.size(); ++i) sum += losses[i] / 20;
    return sum;
  }
};

Run train(const System& system, const Text& text, const Way& way, int64_t seed = 1) {
  const Plainly plainly(way);
  Trainer trainer(config_of(system, kLength, kSequences * kLength, way, kSteps, seed), text.vocabulary(), text.batches(kLength));
  Run run;
  for (int64_t i = 0; i < kSteps; ++i) run.losses.push_back(trainer.step().loss);
  run.state = trainer.state();
  return run;
}

bool same_bytes(const Run& a, const Run& b) {
  for (size_t i = 0; i < a.state.weights.size(); ++i) {
    const Tensor &x = a.state.weights[i].tensor, &y = b.state.weights[i].tensor;
    if (std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.bytes())) != 0) return false;
  }
  return a.losses == b.losses;
}

/// Another process that keeps the GPU busy while it lives.
class Neighbour {
 public:
  explicit Neighbour(const char* program) {
    char busy[] = "busy";
    char* const arguments[] = {const_cast<char*>(program), busy, nullptr};
    if (posix_spawn(&process_, program, nullptr, nullptr, arguments, environ) != 0) throw std::runtime_error("no second process");
  }
  ~Neighbour() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t process_ = 0;
};

[[noreturn]] void keep_busy(const Text& text) {
  for (;;) train(systems("10m").back(), text, {"cuda", "bf16"});
}

/// Initial values of `seeds` seeds, the same sequences: a run that answers small differences strongly is judged by the mean of several.
bool check_run(const System& system, const Text& text, const char* program, int64_t seeds) {
  double bf16 = 0, f32 = 0, plain_bf16 = 0;
  Run fast;
  for (int64_t seed = seeds; seed >= 1; --seed) {
    fast = train(system, text, {"cuda", "bf16"}, seed);
    const double plain = train(system, text, {"cuda", "f32", true}, seed).end(),
                 rounded = train(system, text, {"cuda", "bf16", true}, seed).end();
    if (seeds > 1)
      std::printf("%-34s %9.4f %9.4f %9.4f %9.4f  seed %ld\n", system.name.c_str(), fast.end(), plain, fast.end() - plain, rounded - plain,
                  seed);
    std::fflush(stdout);
    bf16 += fast.end() / static_cast<double>(seeds), f32 += plain / static_cast<double>(seeds),
        plain_bf16 += rounded / static_cast<double>(seeds);
  }
  std::string problems;
  if (!(std::abs(bf16 - f32) <= 0.02)) problems += " the losses part;";
  if (!same_bytes(train(system, text, {"cuda", "bf16"}), fast)) problems += " two runs differ;";
  cuda::CapturedGraph::set_enabled(false);
  if (!same_bytes(train(system, text, {"cuda", "bf16"}), fast)) problems += " captured graphs change the run;";
  cuda::CapturedGraph::set_enabled(true);
  {
    const Neighbour neighbour(program);
    if (!same_bytes(train(system, text, {"cuda", "bf16"}), fast)) problems += " another process on the GPU changes the run;";
  }
  std::printf("%-34s %9.4f %9.4f %9.4f %9.4f  %s%s\n", system.name.c_str(), bf16, f32, bf16 - f32, plain_bf16 - f32,
              problems.empty() ? "ok" : "FAILED:", problems.c_str());
  std::fflush(stdout);
  return problems.empty();
}

int check_runs(const Text& text, const std::string& only, const char* program, int64_t seeds) {
  std::printf("%ld steps of %ld tokens, mean training loss of the last 20: bf16, float32 plainly, difference, bf16 plainly less that.\n",
              kSteps, kSequences * kLength);
  int failed = 0;
  const std::vector<System> all = systems("10m");
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.find(only) == std::string::npos || !test::in_shard(i)) continue;
    try {
      failed += check_run(all[i], text, program, seeds) ? 0 : 1;
    } catch (const std::exception& error) {
      ++failed, std::printf("%-34s FAILED: %.200s\n", all[i].name.c_str(), error.what());
    }
    cuda::CapturedGraph::set_enabled(true);
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  test::first_gpu();
  const std::string wanted = argc > 1 ? argv[1] : "", only = argc > 2 ? argv[2] : "";
  const Text text;
  if (wanted == "busy") keep_busy(text);
  int failed = 0;
  if (wanted != "run") failed += check_steps(text, only);
  if (wanted != "step") failed += check_runs(text, only, argv[0], argc > 3 ? std::max(1L, std::atol(argv[3])) : 1);
  std::printf("%d rows failed\n", failed);
  return failed == 0 ? 0 : 1;
}

#include "models/training/plan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <utility>

#include "models/architectures/stack.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/layers/block_model.h"
#include "models/layers/initialise.h"
#include "models/tasks/symbol_task.h"
#include "models/training/decoder.h"
#include "models/training/probe_plan.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

/// Sums over all steps; only those of a warm-up of the batch differ.
void add_up(Plan& plan, const TrainingConfig& training) {
  const int64_t growing = std::min(training.batch_warmup_steps, training.steps), whole = training.steps - growing;
  plan.tokens = whole * training.batch_tokens;
  plan.run_flops = plan.flops_per_step * static_cast<double>(whole);
  for (int64_t step = 1; step <= growing; ++step) {
    const int64_t count = micro_batches(training, step);
    plan.tokens += count * micro_batch_tokens(training);
    plan.run_flops += plan.flops_of(count);
  }
}

/// Costs of an optimizer step: all micro-batches after the first cost the same.
struct StepCost {
  Cost step, further;  ///< of a whole step, and of a micro-batch after the first
};
StepCost step_cost(TrainingStep& step, int64_t micro_batches) {
  Tape& tape = step.tape();
  const auto measured = [&](auto&& action) {
    tape.reset_cost();
    action();
    return tape.cost();
  };
  step.begin();
  Cost total = measured([&] { step.forward_backward(); }), more;
  if (micro_batches > 1) {
    more = measured([&] { step.forward_backward(); });
    total.flops += static_cast<double>(micro_batches - 1) * more.flops;
    total.bytes += static_cast<double>(micro_batches - 1) * more.bytes;
  }
  const Cost update = measured([&] {
    step.gradient_norm();
    step.update(1e-3, 1);
  });
  return {{total.flops + update.flops, total.bytes + update.bytes}, more};
}

/// Of the step of all ranks, which is that of one rank alone; afterwards the arena of `step` knows its peak.
StepCost cost_of_all(TrainingStep& step, const RunConfig& config, int64_t vocabulary, Engine engine) {
  const int64_t micro_batches = config.training.gradient_accumulation;
  if (step.ranks().count == 1) return step_cost(step, micro_batches);
  step_cost(step, micro_batches / step.ranks().count);
  TrainingStep alone(config, vocabulary, Device::plan(engine));
  return step_cost(alone, micro_batches);
}

/// What a domain is evaluated on: tokens in a sequence, and how many answers they have at most (0: text).
struct EvaluatedDomain {
  std::string name;
  int64_t length = 0;
  int64_t most_answers = 0;
};
std::vector<EvaluatedDomain> evaluated_domains(const DataConfig& data) {
  std::vector<EvaluatedDomain> list;
  for (const auto* domains : {&data.train, &data.ood})
    for (const std::string& name : *domains) {
      if (data.task.empty()) {
        list.push_back({name, data.sequence_length, 0});
        continue;
      }
      const SymbolDomain domain(symbol_task(data.task), name, "/data");
      list.push_back({name, domain.length(), domain.most_targets()});
    }
  return list;
}

EvaluationPass::Planned planned_piece(EvaluationPass& pass, const EvaluatedDomain& domain, int64_t trained) try {
  return pass.plan(domain.length, domain.most_answers);
} catch (const UsageError& error) {
  if (domain.length <= trained) throw;
  throw UsageError("/data/ood names \"" + domain.name + "\", but the model ends at " + std::to_string(trained) + " tokens (" +
                   error.what() + ")");
}

/// Forward passes over the frozen batches of every domain, on the arena of the step; gives what the engine refuses.
std::string plan_evaluation(TrainingStep& step, const RunConfig& config, Plan& plan) {
  step.arena().reset_peak();
  EvaluationPass pass(
      step.model(), step.arena(), [&](Tape& tape) { step.prepare(tape); }, micro_batch_tokens(config.training));
  const int64_t trained = config.data.sequence_length;
  const auto sequences = static_cast<double>(evaluation_sequences(config.training, trained));
  std::map<std::pair<int64_t, int64_t>, EvaluationPass::Planned> pieces;
  std::string refusal;
  for (const EvaluatedDomain& domain : evaluated_domains(config.data)) {
    const std::pair shape(domain.length, domain.most_answers);
    auto piece = pieces.find(shape);
    if (piece == pieces.end()) piece = pieces.emplace(shape, planned_piece(pass, domain, trained)).first;
    plan.flops_per_evaluation += piece->second.cost.flops / static_cast<double>(piece->second.sequences) * sequences;
    if (refusal.empty()) refusal = piece->second.refusal;
  }
  plan.evaluation_bytes = step.arena().peak_extent();
  return refusal;
}

/// Measured on an H200 with CUDA 13.0 (tests/gpu/memory_check.cpp); tensors come in pieces of kGrowth.
int64_t cuda_runtime_bytes(int64_t peak) {
  constexpr int64_t kContext = int64_t{664} << 20, kGrowth = int64_t{64} << 20;
  return kContext + (kGrowth - peak % kGrowth) % kGrowth;
}

/// Of the parameters called "layer3.…".
int64_t parameters_of_layer(const Model& model, int64_t layer) {
  const std::string prefix = layer_name(layer, "");
  int64_t count = 0;
  for (const Parameter& p : model.parameters())
    if (p.name.rfind(prefix, 0) == 0) count += p.value.size();
  return count;
}

std::vector<PlannedLayers> planned_layers(const nlohmann::json& architecture, const Model& model, DType activations) {
  std::vector<PlannedLayers> list;
  const std::vector<std::string> titles = layer_titles(architecture);
  const auto* stack = dynamic_cast<const BlockModel*>(&model);
  for (size_t l = 0; stack && l < titles.size(); ++l) {
    const auto layer = static_cast<int64_t>(l);
    const double state = stack->blocks()[l]->state_values_per_token() * static_cast<double>(byte_size(activations));
    const PlannedLayers own{layer, layer, titles[l], parameters_of_layer(model, layer), std::llround(state)};
    const bool alike = !list.empty() && list.back().mixer == own.mixer && list.back().parameters == own.parameters &&
                       list.back().state_bytes_per_token == own.state_bytes_per_token;
    if (alike)
      list.back().last = layer;
    else
      list.push_back(own);
  }
  return list;
}

nlohmann::json to_json(const std::vector<PlannedLayers>& layers) {
  nlohmann::json list = nlohmann::json::array();
  for (const PlannedLayers& l : layers)
    list.push_back({{"first", l.first},
                    {"last", l.last},
                    {"mixer", l.mixer},
                    {"parameters", l.parameters},
                    {"state_bytes_per_token", l.state_bytes_per_token}});
  return list;
}

std::atomic<int64_t> plans{0};

/// What a config takes on an engine, wherever it runs, and what the engine refuses.
struct Planned {
  Plan plan;
  std::string refusal;
};
Planned plan_of(const RunConfig& config, int64_t vocabulary, Engine engine, const Ranks& ranks) {
  ++plans;
  Ranks planned_ranks = ranks;
  planned_ranks.communicator = nullptr;  // nothing is sent
  TrainingStep step(config, vocabulary, Device::plan(engine), planned_ranks);
  Plan plan;
  plan.ranks = ranks.count;
  plan.vocabulary = vocabulary;
  plan.parameters = step.model().parameter_count();
  for (const AdamWSlot& slot : step.slots()) {
    plan.weight_bytes += slot.value.bytes() + (slot.compute_copy ? slot.compute_copy.bytes() : 0);
    plan.gradient_bytes += slot.grad.bytes();
  }
  for (const TensorGroup& group : step.optimizer().state())
    for (const NamedTensor& named : group.tensors) plan.optimizer_bytes += named.tensor.bytes();
  plan.sum_bytes = step.exchange().bytes();
  const auto [cost, further] = cost_of_all(step, config, vocabulary, engine);
  plan.flops_per_micro_batch = further.flops;
  plan.micro_batches = config.training.gradient_accumulation;
  plan.flops_per_step = cost.flops;
  plan.bytes_per_step = cost.bytes;
  const int64_t step_bytes = step.arena().peak_extent();
  const std::string evaluation_refusal = plan_evaluation(step, config, plan);
  plan.peak_bytes = std::max(step_bytes, plan.evaluation_bytes);
  const ProbePlan probes = plan_probes(step, config);
  plan.probe_bytes = probes.device_bytes;
  plan.probe_host_bytes = probes.passing_bytes;
  plan.capture_bytes = probes.held_bytes;
  plan.engine = engine;
  plan.activation_bytes = plan.peak_bytes - plan.weight_bytes - plan.gradient_bytes - plan.optimizer_bytes - plan.sum_bytes;
  if (engine == Engine::cuda) plan.runtime_bytes = cuda_runtime_bytes(std::max(plan.peak_bytes, plan.probe_bytes));
  plan.steps = config.training.steps;
  plan.tokens_per_step = config.training.batch_tokens;
  add_up(plan, config.training);
  plan.state_bytes_per_token =
      std::llround(step.model().state_values_per_token() * static_cast<double>(byte_size(step.precision().activations)));
  plan.without_tensor_cores = step.tape().without_tensor_cores();
  plan.layers = planned_layers(config.architecture, step.model(), step.precision().activations);
  return {plan, step.tape().refusal().empty() ? evaluation_refusal : step.tape().refusal()};
}

/// What a config says of its device and its precision; whether the engine refuses an op is for a plan to tell.
struct Wish {
  std::optional<Device> device;  ///< nothing: a GPU that is not there
  bool may_fall_back = false;    ///< `auto` on a machine with a GPU
  std::string why_not_gpu;
};
Wish wish_of(const RunConfig& config, const Ranks& ranks) {
  Wish wish{find_device(rank_device(config.device, ranks)), false, {}};
  wish.may_fall_back = config.device == "auto" && !ranks.on_gpus && ranks.device.empty() && wish.device->is_cuda();
  if (!wish.may_fall_back || computes_in(config.precision, Engine::cuda)) return wish;
  return {Device::cpu(), false, "CUDA does not compute in " + config.precision};
}

std::string mebibytes(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

int64_t plans_made() { return plans; }

int64_t Plan::device_bytes() const {
  if (engine == Engine::cuda) return std::max(peak_bytes, probe_bytes) + runtime_bytes;
  return std::max(peak_bytes, probe_bytes + probe_host_bytes) + capture_bytes;
}

Plan make_plan(const RunConfig& config, int64_t vocabulary, const Ranks& ranks) {
  Wish wish = wish_of(config, ranks);
  Planned planned = plan_of(config, vocabulary, wish.device ? wish.device->engine : Engine::cuda, ranks);
  if (!planned.refusal.empty()) {
    if (!wish.may_fall_back) throw DeviceError(planned.refusal);
    wish = {Device::cpu(), false, planned.refusal};
    planned = plan_of(config, vocabulary, Engine::cpu, ranks);
  }
  Plan& plan = planned.plan;
  plan.where = wish.device;
  plan.device = plan.where ? to_string(*plan.where) : rank_device(config.device, ranks);
  plan.why_not_gpu = wish.why_not_gpu;
  if (plan.where) plan.memory = device_memory(*plan.where);
  return plan;
}

Device run_device(const RunConfig& config, int64_t vocabulary) {
  return config.device == "auto" ? *make_plan(config, vocabulary).where : parse_device(config.device);
}

void require_precision(const RunConfig& config, const Ranks& ranks) {
  const Wish wish = wish_of(config, ranks);
  parse_precision(config.precision, wish.device ? *wish.device : parse_device(rank_device(config.device, ranks)));
}

int64_t planned_evaluation_bytes(const RunConfig& config, int64_t vocabulary, Engine engine, int64_t length) {
  InferenceModel model(config.architecture, vocabulary, config.data.sequence_length, Device::plan(engine), config.precision,
                       static_cast<uint64_t>(config.training.seed));
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(config.training));
  if (const std::string refusal = pass.plan(length).refusal; !refusal.empty()) throw DeviceError(refusal);
  return model.arena().peak_extent();
}

MemoryState device_memory(Device device) {
  if (!device.is_cuda()) return cpu_memory();
  for (const Gpu& gpu : gpus())
    if (gpu.index == device.index) return {gpu.memory_total, gpu.memory_free};
  return {};
}

void require_device(const RunConfig& config, const Plan& plan) {
  const Device device = plan.where ? *plan.where : parse_device(plan.device.empty() ? config.device : plan.device);
  const auto require = [](int64_t bytes, Device where, const std::string& what, const std::string& advice) {
    if (const int64_t available = device_memory(where).available; bytes > available)
      throw DeviceError(what + " " + mebibytes(bytes) + " of memory on " + to_string(where) + ", " + mebibytes(available) +
                        " are available; " + advice);
  };
  if (plan.evaluation_bytes >= plan.peak_bytes)
    require(plan.evaluation_bytes + plan.runtime_bytes, device, "evaluating the domains of the run needs",
            "name shorter domains in /data/ood, reduce /training/batch_tokens or /architecture/width");
  require(plan.peak_bytes + plan.runtime_bytes, device, "the run needs",
          "set /training/activation_checkpointing, reduce /training/batch_tokens, raise /training/gradient_accumulation, or reduce "
          "/architecture/width");
  const std::string looking = "with its statistics and captures the run needs",
                    less = "reduce /training/capture_tokens or /architecture/heads";
  require(plan.device_bytes(), device, looking, less);
  if (device.is_cuda()) require(plan.host_bytes(), Device::cpu(), looking, less);
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json object{{"device", plan.device},
                        {"memory_available_bytes", plan.memory.available},
                        {"parameters", plan.parameters},
                        {"weight_bytes", plan.weight_bytes},
                        {"gradient_bytes", plan.gradient_bytes},
                        {"optimizer_bytes", plan.optimizer_bytes},
                        {"ranks", plan.ranks},
                        {"sum_bytes", plan.sum_bytes},
                        {"without_tensor_cores", plan.without_tensor_cores},
                        {"activation_bytes", plan.activation_bytes},
                        {"peak_bytes", plan.peak_bytes},
                        {"evaluation_bytes", plan.evaluation_bytes},
                        {"probe_bytes", plan.probe_bytes},
                        {"probe_host_bytes", plan.probe_host_bytes},
                        {"capture_bytes", plan.capture_bytes},
                        {"runtime_bytes", plan.runtime_bytes},
                        {"device_bytes", plan.device_bytes()},
                        {"flops_per_step", plan.flops_per_step},
                        {"bytes_per_step", plan.bytes_per_step},
                        {"flops_per_evaluation", plan.flops_per_evaluation},
                        {"steps", plan.steps},
                        {"tokens_per_step", plan.tokens_per_step},
                        {"tokens", plan.tokens},
                        {"state_bytes_per_token", plan.state_bytes_per_token},
                        {"total_flops", plan.total_flops()}};
  if (!plan.layers.empty()) object["layers"] = to_json(plan.layers);
  return object;
}

}  // namespace saccade

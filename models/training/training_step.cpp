#include "models/training/training_step.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/engine/parallel.h"
#include "kernels/engine/progress.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/step_measures/step_measures.h"
#include "models/architectures/registry.h"
#include "models/tasks/symbol_task.h"
#include "models/training/initialisation.h"

namespace saccade {
namespace {

/// Of every parameter, with its copy for products where there is one. `rates`: of initialise().
std::vector<AdamWSlot> slots_of(const Model& model, Arena& arena, const Precision& precision, const RunConfig& config,
                                const std::vector<double>& rates) {
  const TrainingConfig& training = config.training;
  constexpr const char* kPointer = "/training/learning_rate_multipliers";
  const std::vector<Parameter>& parameters = model.parameters();
  const std::vector<double> factors = rate_factors(parse_multipliers(training.learning_rate_multipliers, kPointer), parameters, kPointer);
  const std::vector<Tensor> copies = allocate_for(
      parameters, arena, DType::bf16, [&](const Parameter& p) { return precision.activations == DType::bf16 && p.value.rank() == 2; });
  std::vector<AdamWSlot> slots;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    slots.push_back({.value = p.value, .grad = p.grad, .decay = p.decay, .compute_copy = copies[i], .rate = factors[i] * rates[i]});
  }
  return slots;
}

Tensor fresh_tokens(Arena& arena, const TrainingConfig& training, int64_t length) {
  return arena.allocate({micro_batch_tokens(training) / length, length}, DType::i32);
}

/// Of a micro-batch.
int64_t most_targets_of(const DataConfig& data, const Tensor& tokens) {
  return data.task.empty() ? tokens.size() : tokens.dim(0) * most_targets(data.task, data.train, "/data/train");
}

int64_t cores() { return std::max<int64_t>(1, std::thread::hardware_concurrency()); }

}  // namespace

bool computes_in(const std::string& precision, Engine engine) {
  return precision == "auto" || precision == "f32" || precision == (engine == Engine::cuda ? "bf16" : "f64");
}

Precision parse_precision(const std::string& precision, Device device) {
  const bool on_cuda = device.engine == Engine::cuda;
  if (!computes_in(precision, device.engine))
    throw UsageError("/precision is \"" + precision + "\", which " + (on_cuda ? "CUDA" : "the CPU") +
                     " does not compute in; expected auto, f32 or " + (on_cuda ? "bf16" : "f64"));
  if (precision == "f64") return {DType::f64, DType::f64};
  return {DType::f32, on_cuda && precision != "f32" ? DType::bf16 : DType::f32};
}

std::string too_many_threads(int64_t threads) {
  if (threads <= cores()) return {};
  return "/threads is " + std::to_string(threads) + ", and there are " + std::to_string(cores()) + " cores: " + std::to_string(cores()) +
         " threads are used";
}

void use_threads(int64_t threads, int processes) {
  static const int at_start = thread_count();
  const int wanted = threads > 0 ? static_cast<int>(std::min(threads, cores())) : std::max(1, at_start / processes);
  if (wanted != thread_count()) set_thread_count(wanted);
}

TrainingStep::TrainingStep(const RunConfig& config, int64_t vocabulary, Device device, const Ranks& ranks)
    : training_((require_divisible(config.training, ranks.count), config.training)),
      ranks_(ranks),
      precision_(parse_precision(config.precision, device)),
      arena_(device),
      tape_(arena_, true),
      model_(make_model(config.architecture, vocabulary, config.data.sequence_length, arena_, precision_.parameters,
                        static_cast<uint64_t>(training_.seed), true)),
      slots_(slots_of(*model_, arena_, precision_, config, initialise(*model_, config, vocabulary))),
      exchange_(std::make_unique<GradientExchange>(ranks, training_, *model_, slots_, arena_)),
      optimizer_(saccade::optimizer(training_.optimizer)
                     .make(training_.optimizer_settings, {*model_, exchange_->slots(), exchange_->pieces(), arena_})),
      tokens_(fresh_tokens(arena_, training_, config.data.sequence_length)),
      targets_(fresh_tokens(arena_, training_, config.data.sequence_length)),
      rates_(arena_.allocate({static_cast<int64_t>(optimizer_->rates(0, 1).size())}, DType::f64)),
      measures_(arena_.allocate({2}, DType::f64)),
      next_tokens_(tokens_),
      next_targets_(targets_),
      next_rates_(rates_),
      most_targets_(most_targets_of(config.data, tokens_)) {
  model_->bind_gradients(tape_);
  tape_.set_recompute(training_.activation_checkpointing);
  prepare(tape_);
  refresh_copies();
  if (ranks.count > 1) micro_batch_loss_ = arena_.allocate({1}, precision_.parameters);
  if (config.data.packing == "packed" && config.data.task.empty()) return;  // every row has a target
  target_share_ = arena_.allocate({1}, precision_.parameters);
  next_target_share_.emplace(target_share_);
}

void thin_out(std::span<int32_t> targets, int64_t most_targets) {
  const auto rows = static_cast<int64_t>(targets.size());
  for (int64_t i = 0; i < rows; ++i)
    if ((i + 1) * most_targets / rows == i * most_targets / rows) targets[static_cast<size_t>(i)] = kNoTarget;
}

void TrainingStep::prepare(Tape& tape) const {
  if (precision_.activations != DType::bf16) return;
  tape.set_activation_dtype(DType::bf16);
  for (const AdamWSlot& slot : slots_)
    if (slot.compute_copy) tape.bind_compute_copy(slot.value, slot.compute_copy);
}

void TrainingStep::refresh_copies() {
  for (const AdamWSlot& slot : slots_)
    if (slot.compute_copy) convert(slot.compute_copy, slot.value);
}

std::span<int32_t> TrainingStep::span_of(Staging& staging) {
  return {static_cast<int32_t*>(staging.next()), static_cast<size_t>(tokens_.size())};
}

void TrainingStep::send_ahead() {
  next_tokens_.ahead();
  next_targets_.ahead();
}

void TrainingStep::begin(int64_t micro_batches, int64_t targets) {
  done_ = 0;
  micro_batches_ = micro_batches > 0 ? micro_batches : training_.gradient_accumulation;
  if (!next_target_share_) return;
  const int64_t counted = targets > 0 ? targets : micro_batches_ * tokens_.size();
  if (void* to = next_target_share_->next())
    dispatch(target_share_.dtype(), [&](auto zero) {
      *static_cast<decltype(zero)*>(to) = static_cast<decltype(zero)>(static_cast<double>(tokens_.size()) / static_cast<double>(counted));
    });
  next_target_share_->send();
}

void TrainingStep::forward_backward() {
  raise_progress();
  check_targets();
  next_tokens_.send();
  next_targets_.send();
  Passes& passes = passes_[micro_batches_];
  (done_ == 0 ? passes.first : passes.further)(arena_.device(), [&] { run_forward_backward(); });
  exchange_->add(tape_, micro_batch_loss_, done_, micro_batches_);
  ++done_;
}

/// Where fewer than all rows can have a target: the others have no memory for logits, and a GPU would not say so.
void TrainingStep::check_targets() {
  const std::span<const int32_t> targets = std::exchange(filled_targets_, {});
  if (!targets.data() || most_targets_ == tokens_.size()) return;
  const auto without = std::count(targets.begin(), targets.end(), kNoTarget);
  if (const int64_t count = tokens_.size() - without; count > most_targets_)
    throw DataError("a micro-batch has " + std::to_string(count) + " targets; the examples of its task have at most " +
                    std::to_string(most_targets_));
}

/// The gradients of every micro-batch stand alone: GradientExchange adds them up.
void TrainingStep::run_forward_backward() {
  tape_.fresh_grads();
  Tensor loss = model_->loss(tape_, tokens_, targets_, nullptr, nullptr, {training_.max_logit_penalty, most_targets_});
  if (target_share_) loss = scaled(tape_, loss, target_share_);
  const double share = loss_share();
  if (ranks_.count > 1)
    convert(micro_batch_loss_, loss);
  else
    add_loss(tape_, measures_.slice(0, 1), loss, share, done_ == 0);
  tape_.backward(loss, share);
}

/// Of a micro-batch in the step's loss.
double TrainingStep::loss_share() const { return target_share_ ? 1.0 : 1.0 / static_cast<double>(micro_batches_); }

void TrainingStep::gradient_norm() {
  const Tensor loss = measures_.slice(0, 1), norm = measures_.slice(1, 2);
  if (ranks_.count > 1) {  // ranks wait for each other, which no graph records
    exchange_->sum_losses(tape_, loss, loss_share(), micro_batches_);
    exchange_->norm(tape_, norm);
    return require_finite_loss(tape_, norm, loss);
  }
  norm_pass_(arena_.device(), [&] {
    exchange_->norm(tape_, norm);
    require_finite_loss(tape_, norm, loss);
  });
}

void TrainingStep::update(double learning_rate, int64_t step) {
  const std::vector<double> rates = optimizer_->rates(learning_rate, step);
  if (auto* to = static_cast<double*>(next_rates_.next())) std::copy(rates.begin(), rates.end(), to);
  next_rates_.send();
  update_pass_(arena_.device(), [&] { optimizer_->update(tape_, rates_, training_.max_grad_norm, measures_.slice(1, 2)); });
  ++steps_;
  if (ranks_.count == 1) return;
  exchange_->share_weights();
  copies_pass_(arena_.device(), [&] { refresh_copies(); });
}

TrainingStep::Measures TrainingStep::measures() const {
  if (arena_.device().is_plan()) return {};
  double values[2];
  copy_to_host(values, measures_);
  return {values[0], values[1]};
}

}  // namespace saccade

#include "models/training/training_step.h"

#include <cstring>

#include "kernels/parallel.h"
#include "kernels/transfer.h"
#include "models/architectures/registry.h"

namespace saccade {
namespace {

Tensor zeroed(Arena& arena, const Tensor& like) {
  Tensor x = arena.allocate(like.shape(), like.dtype());
  if (x.raw()) std::memset(x.raw(), 0, static_cast<size_t>(x.bytes()));
  return x;
}

}  // namespace

DType parse_precision(const std::string& precision, Device device) {
  if (precision == "f32") return DType::f32;
  if (precision == "f64" && !device.is_cuda()) return DType::f64;
  throw UsageError("/precision is \"" + precision + "\", which " + to_string(device) + " does not compute in; expected f32" +
                   (device.is_cuda() ? "" : " or f64"));
}

void use_threads(int64_t threads) {
  static const int at_start = thread_count();
  const int wanted = threads > 0 ? static_cast<int>(threads) : at_start;
  if (wanted != thread_count()) set_thread_count(wanted);
}

TrainingStep::TrainingStep(const RunConfig& config, int64_t vocabulary, Device device)
    : training_(config.training), dtype_(parse_precision(config.precision, device)), arena_(device), tape_(arena_, true) {
  const int64_t length = config.data.sequence_length;
  const int64_t sequences = training_.batch_tokens / length / training_.accumulate;
  model_ = make_model(config.architecture, vocabulary, length, arena_, dtype_, static_cast<uint64_t>(training_.seed), true);
  for (const Parameter& p : model_->parameters())
    slots_.push_back({p.value, p.grad, zeroed(arena_, p.value), zeroed(arena_, p.value), p.decay});
  model_->bind_gradients(tape_);
  tokens_ = arena_.allocate({sequences, length}, DType::i32);
  targets_ = arena_.allocate({sequences, length}, DType::i32);
  norm_ = arena_.allocate({1}, DType::f64);
  rates_ = arena_.allocate({3}, DType::f64);
}

std::span<int32_t> TrainingStep::tokens() const { return {tokens_.data<int32_t>(), static_cast<size_t>(tokens_.size())}; }
std::span<int32_t> TrainingStep::targets() const { return {targets_.data<int32_t>(), static_cast<size_t>(targets_.size())}; }

void TrainingStep::begin() { tape_.fresh_grads(); }

double TrainingStep::forward_backward() {
  const Tensor loss = model_->loss(tape_, tokens_, targets_);
  double value = 0;
  if (loss.raw()) dispatch(dtype_, [&](auto zero) { value = static_cast<double>(*loss.data<decltype(zero)>()); });
  tape_.backward(loss, 1.0 / static_cast<double>(training_.accumulate));
  return value;
}

double TrainingStep::gradient_norm() {
  saccade::gradient_norm(tape_, slots_, norm_);
  return norm_.raw() ? *norm_.data<double>() : 0;
}

void TrainingStep::update(double learning_rate, int64_t step) {
  const AdamW options{training_.beta1, training_.beta2, training_.epsilon, training_.weight_decay};
  const auto rates = adamw_rates(options, learning_rate, step);
  if (!arena_.device().is_plan()) copy_from_host(rates_, rates.data());
  adamw_step(tape_, slots_, options, rates_, training_.clip, norm_);
}

}  // namespace saccade

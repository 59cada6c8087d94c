#pragma once
#include "models/optimizers/registry.h"

namespace saccade {

/// What AdamW is told; the same settings hold for the tensors that another optimizer leaves to it.
struct AdamWSettings {
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
};
const Schema<AdamWSettings>& adamw_schema();

/// AdamW over some of a model's parameters.
class AdamWPart {
 public:
  /// `chosen`: indices of slots.
  AdamWPart(const AdamWSettings& settings, const OptimizedModel& model, const std::vector<size_t>& chosen);

  /// adamw_rates
  std::vector<double> rates(double learning_rate, int64_t step) const;
  void update(Tape& tape, const Tensor& rates, double clip, const Tensor& norm);
  /// Groups first_moments and second_moments.
  std::vector<TensorGroup> state() const;

 private:
  AdamW options_;
  std::vector<AdamWSlot> slots_;
  std::vector<std::string> names_;
};

}  // namespace saccade

#include "models/optimizers/adamw.h"

#include <numeric>

namespace saccade {

const Schema<AdamWSettings>& adamw_schema() {
  static const Schema<AdamWSettings> schema{
      field("weight_decay", &AdamWSettings::weight_decay, {0, 100}, "Decoupled decay, on matrices only.", "arXiv:1711.05101, algorithm 2"),
      field("beta1", &AdamWSettings::beta1, {0, 0.999999}, "AdamW's decay of the first moment.", "arXiv:1711.05101, algorithm 2"),
      field("beta2", &AdamWSettings::beta2, {0, 0.999999}, "AdamW's decay of the second moment.", "arXiv:1711.05101, algorithm 2"),
      field("epsilon", &AdamWSettings::epsilon, {1e-20, 1}, "AdamW's epsilon.", "arXiv:1711.05101, algorithm 2"),
  };
  return schema;
}

AdamWPart::AdamWPart(const AdamWSettings& settings, const OptimizedModel& model, const std::vector<size_t>& chosen)
    : options_{settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay} {
  for (const size_t i : chosen) {
    AdamWSlot slot = model.slots[i];
    slot.first_moment = model.state_of(i);
    slot.second_moment = model.state_of(i);
    slots_.push_back(slot);
    names_.push_back(model.parameter(i).name);
  }
}

std::vector<double> AdamWPart::rates(double learning_rate, int64_t step) const {
  const auto numbers = adamw_rates(options_, learning_rate, step);
  return {numbers.begin(), numbers.end()};
}

void AdamWPart::update(Tape& tape, const Tensor& rates, double clip, const Tensor& norm) {
  adamw_step(tape, slots_, options_, rates, clip, norm);
}

std::vector<TensorGroup> AdamWPart::state() const {
  std::vector<TensorGroup> groups{{"first_moments", {}}, {"second_moments", {}}};
  for (size_t i = 0; i < slots_.size(); ++i) {
    groups[0].tensors.push_back({names_[i], slots_[i].first_moment});
    groups[1].tensors.push_back({names_[i], slots_[i].second_moment});
  }
  return groups;
}

namespace {

class AdamWOptimizer : public Optimizer {
 public:
  AdamWOptimizer(const nlohmann::json& values, const OptimizedModel& model)
      : part_(adamw_schema().read(values, "/training"), model, everything(model)) {}

  std::vector<double> rates(double learning_rate, int64_t step) const override { return part_.rates(learning_rate, step); }
  void update(Tape& tape, const Tensor& rates, double clip, const Tensor& norm) override { part_.update(tape, rates, clip, norm); }
  std::vector<TensorGroup> state() const override { return part_.state(); }

 private:
  static std::vector<size_t> everything(const OptimizedModel& model) {
    std::vector<size_t> all(model.slots.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
  AdamWPart part_;
};

const RegisterOptimizer adamw{
    {"adamw", "AdamW", "arXiv:1711.05101, algorithm 2", adamw_schema().settings(),
     [](const nlohmann::json& values, const OptimizedModel& model) { return std::make_unique<AdamWOptimizer>(values, model); }}};

}  // namespace
}  // namespace saccade

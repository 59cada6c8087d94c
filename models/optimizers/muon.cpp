#include "kernels/ops/muon/muon.h"

#include <algorithm>

#include "models/optimizers/adamw.h"

namespace saccade {
namespace {

struct MuonSettings {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t newton_schulz_steps = 5;
  std::string learning_rate_adjustment = "match_rms_adamw";
  std::vector<std::string> adamw_tensors = {"embedding", "position", "*_table", "*conv"};
};

constexpr const char* kSource = "arXiv:2502.16982, section 2";

const Schema<MuonSettings> schema{
    field("momentum", &MuonSettings::momentum, {0, 0.999999}, "Muon's decay of the mean gradient.", kSource),
    field("nesterov", &MuonSettings::nesterov, "Nesterov's momentum: the mean gradient one step ahead.", kSource),
    field("newton_schulz_steps", &MuonSettings::newton_schulz_steps, {1, 20}, "Steps that make the update of a matrix orthonormal.",
          kSource),
    choice_field(
        "learning_rate_adjustment", &MuonSettings::learning_rate_adjustment, {"match_rms_adamw", "original"},
        "How the learning rate follows a matrix [n, k]: match_rms_adamw times 0.2 sqrt(max(n, k)), so that one learning rate and decay "
        "serve AdamW's tensors too; original times sqrt(max(1, n / k)).",
        kSource),
    list_field("adamw_tensors", &MuonSettings::adamw_tensors,
               "Matrices that AdamW updates, by name (* for any characters), besides the output matrix; vectors are always AdamW's.",
               kSource),
};

std::vector<Setting> settings() {
  std::vector<Setting> list = schema.settings();
  for (Setting& setting : adamw_schema().settings()) list.push_back(std::move(setting));
  return list;
}

class MuonOptimizer : public Optimizer {
 public:
  MuonOptimizer(const nlohmann::json& values, const OptimizedModel& model)
      : settings_(schema.read(values, "/training")),
        adamw_settings_(adamw_schema().read(values, "/training")),
        adamw_(adamw_settings_, model, adamws(settings_, model)) {
    options_.momentum = settings_.momentum;
    options_.nesterov = settings_.nesterov;
    options_.newton_schulz_steps = settings_.newton_schulz_steps;
    options_.match_rms_adamw = settings_.learning_rate_adjustment == "match_rms_adamw";
    options_.weight_decay = adamw_settings_.weight_decay;
    for (size_t i = 0; i < model.slots.size(); ++i) {
      if (!is_muons(settings_, model.model, model.pieces[i].parameter)) continue;
      const AdamWSlot& slot = model.slots[i];
      slots_.push_back({slot.value, slot.grad, model.state_of(i), slot.rate, slot.compute_copy});
      names_.push_back(model.parameter(i).name);
    }
  }

  /// AdamW's; the first is the learning rate.
  std::vector<double> rates(double learning_rate, int64_t step) const override { return adamw_.rates(learning_rate, step); }
  void update(Tape& tape, const Tensor& rates, double clip, const Tensor& norm) override {
    adamw_.update(tape, rates, clip, norm);
    if (!slots_.empty()) muon_step(tape, slots_, options_, rates.slice(0, 1), clip, norm);
  }
  std::vector<TensorGroup> state() const override {
    std::vector<TensorGroup> groups = adamw_.state();
    groups.push_back({"momentum", {}});
    for (size_t i = 0; i < slots_.size(); ++i) groups.back().tensors.push_back({names_[i], slots_[i].momentum});
    return groups;
  }

  /// Whether a parameter is Muon's, which takes whole matrices.
  static bool is_muons(const MuonSettings& settings, const Model& model, size_t parameter) {
    const Parameter& p = model.parameters()[parameter];
    const auto fits = [&](const std::string& pattern) { return fits_pattern(p.name, pattern); };
    const bool matrix = p.decay && p.value.rank() == 2 && std::min(p.value.dim(0), p.value.dim(1)) > 1;
    return matrix && p.value.id() != model.output_weight().id() &&
           std::none_of(settings.adamw_tensors.begin(), settings.adamw_tensors.end(), fits);
  }

 private:
  static std::vector<size_t> adamws(const MuonSettings& settings, const OptimizedModel& model) {
    std::vector<size_t> rest;
    for (size_t i = 0; i < model.slots.size(); ++i)
      if (!is_muons(settings, model.model, model.pieces[i].parameter)) rest.push_back(i);
    return rest;
  }

  MuonSettings settings_;
  AdamWSettings adamw_settings_;
  AdamWPart adamw_;
  Muon options_;
  std::vector<MuonSlot> slots_;
  std::vector<std::string> names_;
};

const RegisterOptimizer muon{
    {"muon", "Muon", kSource, settings(),
     [](const nlohmann::json& values, const OptimizedModel& model) { return std::make_unique<MuonOptimizer>(values, model); },
     [](const nlohmann::json& values, const Model& model, size_t parameter) {
       return MuonOptimizer::is_muons(schema.read(values, "/training"), model, parameter);
     }}};

}  // namespace
}  // namespace saccade

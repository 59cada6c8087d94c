#include "models/training/initialisation.h"

#include <cmath>
#include <stdexcept>

#include "kernels/engine/transfer.h"
#include "models/architectures/registry.h"
#include "models/optimizers/registry.h"

namespace saccade {
namespace {

/// How a parameter at this width differs from that of the published model at the base width.
struct Scale {
  double deviation = 1, constant = 1, rate = 1;  ///< deviation: of random initial values over the base's; constant: factor of others
};

/// Rows that are looked up, not multiplied with.
bool is_table(const Parameter& p) {
  return p.name == "embedding" || p.name == "position" || fits_pattern(p.name, "layer*.query_table") ||
         fits_pattern(p.name, "layer*.key_table");
}

double ratio(int64_t size, int64_t base) { return static_cast<double>(size) / static_cast<double>(base); }

/// Of matrices [outputs, inputs]; gains, biases, decays and formulas are as at the base width.
Scale scale_of(const Parameter& p, const Parameter& base) {
  const Shape &shape = p.value.shape(), &before = base.value.shape();
  if (!p.decay || shape.rank() != 2 || is_table(p)) return {};
  const double inputs = ratio(shape[1], before[1]);
  const bool outputs_grow = shape[0] != before[0];
  return {outputs_grow ? 1 / std::sqrt(inputs) : 1 / inputs, 1, 1 / inputs};
}

/// The factor of scores: 1/d at this width is 1/√d at the base's.
void scale_scores(const nlohmann::json& architecture, const Parameter& p, int64_t base_width, Scale& scale) {
  if (!architecture.contains("qk_norm") || architecture.at("qk_norm") == "l2") return;
  const bool rms = architecture.at("qk_norm") == "rms";
  if (!fits_pattern(p.name, rms ? "layer*.query_gain" : "layer*.query")) return;
  const double factor = 1 / std::sqrt(ratio(architecture.at("width"), base_width));  // of widths of heads as of widths
  scale.deviation *= factor, scale.constant *= factor, scale.rate *= factor;
}

void rewrite(const Parameter& p, const std::function<double(double value, uint64_t index)>& value) {
  std::vector<double> values = to_doubles(p.value);
  for (size_t i = 0; i < values.size(); ++i) values[i] = value(values[i], i);
  from_doubles(p.value, values);
}

void draw_normal(const Model& model, const RunConfig& config) {
  for (const Parameter& p : model.parameters()) {
    if (p.deviation == 0 || p.value.rank() < 2) continue;
    const Random random(static_cast<uint64_t>(config.training.seed), "initialise " + p.name);
    rewrite(p, [&](double, uint64_t i) { return config.training.initial_deviation * random.normal(i); });
  }
}

std::vector<double> carry_over(const Model& model, const RunConfig& config, int64_t vocabulary, bool write) {
  nlohmann::json at_base = config.architecture;
  at_base["width"] = config.training.mup_base_width;
  Arena arena(Device::plan());
  const auto base = make_model(resolve_architecture(at_base, config.data.sequence_length), vocabulary, config.data.sequence_length, arena,
                               DType::f32, static_cast<uint64_t>(config.training.seed), true);
  const std::vector<Parameter>&parameters = model.parameters(), &before = base->parameters();
  if (parameters.size() != before.size()) throw UsageError("/training/mup_base_width: a model of that width has other tensors");
  const bool tied = std::any_of(parameters.begin(), parameters.end(),
                                [&](const Parameter& p) { return p.name == "embedding" && p.value.id() == model.output_weight().id(); });
  std::vector<double> rates;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.name != before[i].name) throw UsageError("/training/mup_base_width: a model of that width has other tensors");
    Scale scale = scale_of(p, before[i]);
    scale_scores(config.architecture, p, config.training.mup_base_width, scale);
    if (tied && (p.name == "final_norm" || p.name == "final_norm_bias")) {
      const double multiplier = 1 / ratio(config.architecture.at("width"), config.training.mup_base_width);
      scale.constant *= multiplier, scale.rate *= multiplier;
    }
    rates.push_back(scale.rate);
    const double factor = p.deviation > 0 ? scale.deviation * before[i].deviation / p.deviation : scale.constant;
    if (write && factor != 1) rewrite(p, [&](double value, uint64_t) { return factor * value; });
  }
  return rates;
}

}  // namespace

std::vector<double> initialise(const Model& model, const RunConfig& config, int64_t vocabulary) {
  const std::string& scheme = config.training.initialisation;
  const bool write = !model.parameters().front().value.device().is_plan();
  if (scheme == "mup") return carry_over(model, config, vocabulary, write);
  if (scheme == "normal" && write) draw_normal(model, config);
  return std::vector<double>(model.parameters().size(), 1.0);
}

}  // namespace saccade

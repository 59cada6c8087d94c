// Two mixers side by side in one layer, on the same input; their sum, each with a trained gain per channel (as the fused heads of Hymba,
// Dong et al. 2024, arXiv:2411.13676, section 2.1, without the norms in front of the gains).
//
//   y = g_1 ∘ Mixer_1(x) + g_2 ∘ Mixer_2(x),   g_1, g_2 in R^D, 1/2 at the start
//
// Parameters of the parts are layerN.first.… and layerN.second.…, the gains layerN.first_gain and layerN.second_gain [D, 1].
#include "kernels/ops/causal_conv/causal_conv.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"
#include "models/layers/initialise.h"
#include "models/layers/parts_probe.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr double kGain = 0.5;

struct Settings {
  Json first = "attention", second = "mamba2";
};

const Schema<Settings> schema{
    mixer_field("first", &Settings::first, "A mixer, like attention(window=64) or {\"mixer\": \"attention\", \"window\": 64}.",
                "arXiv:2411.13676, section 2.1"),
    mixer_field("second", &Settings::second, "The mixer beside it.", "arXiv:2411.13676, section 2.1"),
};

constexpr const char* kParts[] = {"first", "second"};

struct State : LayerState {
  std::unique_ptr<LayerState> parts[2];

  void each(const std::function<void(Tensor&, Kept)>& f) override {
    for (const auto& part : parts) part->each(f);
  }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override {
    auto some = std::make_unique<State>();
    for (size_t i = 0; i < 2; ++i) some->parts[i] = parts[i]->sequences(first, count);
    return some;
  }
};

class ParallelMixer : public Mixer {
 public:
  ParallelMixer(const ModelShape& shape, const Json& values, ParameterMaker& make, int64_t layer) : layer_(layer) {
    ModelShape around = shape;
    for (size_t i = 0; i < 2; ++i) {
      const Json& part = values.at(kParts[i]);
      const Architecture& entry = architecture(part.at("mixer"));
      {
        const ParameterMaker::Part named(make, kParts[i]);
        parts_[i] = entry.make_mixer(shape_of_part(around, part), part, make, layer);
      }
      around.hold(entry.id, layer);
      if (entry.blends_values) around.hold(kBlendedValues, layer);
      gains_[i] = make.constant(layer_name(layer, std::string(kParts[i]) + "_gain"), {shape.width, 1}, kGain);
    }
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override {
    return sum(tape, pass, [&](size_t i) { return parts_[i]->forward(tape, x, pass); });
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    auto state = std::make_unique<State>();
    for (size_t i = 0; i < 2; ++i) state->parts[i] = parts_[i]->begin(arena, dtype, batch, capacity);
    return state;
  }

  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    const State& kept = dynamic_cast<State&>(state);
    return sum(tape, pass, [&](size_t i) {
      const Tensor y = parts_[i]->extend(tape, x, pass, *kept.parts[i]);
      return pass.last_only && y.dim(1) > 1 ? last_row(y) : y;
    });
  }

  double state_values_per_token() const override { return parts_[0]->state_values_per_token() + parts_[1]->state_values_per_token(); }

 private:
  /// The block adds the residual: a part would add it in front of its gain.
  template <class Part>
  Tensor sum(Tape& tape, Pass& pass, const Part& part) const {
    const Tensor residual = pass.take_residual();
    Probe* probe = pass.probe;
    std::vector<ProbeRecord> records(2);
    Tensor y[2];
    for (size_t i = 0; i < 2; ++i) {
      if (probe) records[i] = record_of_part(*probe, i > 0 ? &records[i - 1] : nullptr), pass.probe = &records[i];
      // A causal convolution of one token is a gain per channel.
      y[i] = causal_conv(tape, part(i), gains_[i], {}, Activation::none);
    }
    pass.probe = probe;
    pass.residual = residual;
    if (probe) report_parts(*probe, layer_, records);
    return add(tape, y[0], y[1]);
  }

  int64_t layer_;
  std::unique_ptr<Mixer> parts_[2];
  Tensor gains_[2];  // [D, 1]
};

void complete(Json& values, const ModelShape& shape, const std::string& pointer) {
  for (const char* part : kParts) values[part] = resolve_part(values.at(part), values, shape, pointer + "/" + part);
}

std::vector<std::string> holds(const Json& values) { return {values.at("first").at("mixer"), values.at("second").at("mixer")}; }

/// "Attention window 64 with Mamba-2"
std::string variant(const Json& values) {
  std::string words;
  for (const char* part : kParts) {
    const Json& own = values.at(part);
    const Architecture& mixer = architecture(own.at("mixer"));
    add_words(words, words.empty() ? mixer.title : "with " + mixer.title);
    if (mixer.variant) add_words(words, mixer.variant(own));
  }
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "parallel",
    .title = "Parallel",
    .paper = "Dong et al. 2024 (Hymba), arXiv:2411.13676, section 2.1",
    .settings = schema.settings(),
    .variant = variant,
    .complete = complete,
    .holds = holds,
    .make_mixer = [](const ModelShape& shape, const Json& values, ParameterMaker& make,
                     int64_t layer) { return std::make_unique<ParallelMixer>(shape, values, make, layer); },
}};

}  // namespace
}  // namespace saccade

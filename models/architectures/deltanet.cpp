// DeltaNet (Yang et al. 2024, arXiv:2406.06484), as in "base capabilities" (arXiv:2505.18522), appendix A.
//
//   q, k, v = silu(conv(W x)),  q and k unit vectors,  β = σ(W_β x)
//   S_t = S_{t−1} + k_t (β_t (v_t − S_{t−1}ᵀ k_t))ᵀ      o_t = S_tᵀ q_t / √K      out = W_o RMSNorm(o)
#include "kernels/delta_rule.h"

#include "kernels/linear.h"
#include "kernels/norm.h"
#include "models/layers/delta_heads.h"
#include "models/layers/initialise.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-6;

struct Settings {
  int64_t filter = 4;
  bool convolution = true;
};

const Schema<Settings> schema{
    field("filter", &Settings::filter, {1, 64}, "Tokens that the convolutions see.", "arXiv:2406.06484, 3.4"),
    field("convolution", &Settings::convolution, "Off: queries, keys and values are a token's own.", "arXiv:2406.06484, table 2"),
};

class DeltaNetMixer : public Mixer {
 public:
  DeltaNetMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : length_(shape.sequence_length),
        heads_({shape.width, shape.heads, shape.head_width(), shape.head_width(), settings.convolution ? settings.filter : 0}, make, layer),
        norm_(make.constant(layer_name(layer, "output_norm"), {shape.head_width()}, 1)),
        output_(make.normal(layer_name(layer, "output"), {shape.width, shape.width}, kDeviation)) {}

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override { return mix(tape, x, nullptr, pass); }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const override {
    return heads_.begin(arena, dtype, batch);
  }
  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    return mix(tape, x, &dynamic_cast<DeltaHeads::State&>(state), pass);
  }

  double state_values_per_token() const override { return heads_.kept() / static_cast<double>(length_); }

 private:
  Tensor mix(Tape& tape, const Tensor& x, DeltaHeads::State* state, Pass& pass) const {
    std::vector<Tensor> more;
    const DeltaRule rule = heads_(tape, x, state, more);
    const Tensor o = rms_norm(tape, delta_rule(tape, rule).o, norm_, kEpsilon);  // [B, T, H, V]
    if (pass.probe) heads_.report(tape, rule, *pass.probe);
    return linear(tape, o.reshape(x.shape()), output_, {}, pass.take_residual());
  }

  int64_t length_;
  DeltaHeads heads_;
  Tensor norm_, output_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "deltanet",
    .title = "DeltaNet",
    .paper = "Yang et al. 2024, arXiv:2406.06484; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults =
        {{"position", nullptr}, {"rotary_base", nullptr}, {"activation", "silu"}, {"norm_epsilon", 1e-6}, {"scaled_residual", false}},
    .variant = [](const nlohmann::json& values) { return std::string(values.at("convolution").get<bool>() ? "" : "without convolution"); },
    .make_mixer = [](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make,
                     int64_t layer) { return std::make_unique<DeltaNetMixer>(shape, schema.read(values, "/architecture"), make, layer); },
}};

}  // namespace
}  // namespace saccade

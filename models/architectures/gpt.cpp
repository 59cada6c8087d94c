// Transformer in the style of GPT-2 (Radford et al. 2019), as in arXiv:2505.18522, appendix A: LayerNorm, biases, GELU MLP of width 4D,
// absolute positions, tied embedding.
//
//   x = E[token] + P[t];   x += Mixer(LN x);   x += W_2 f(W_1 LN x + b_1) + b_2;   logits = E · LN x
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/norm/norm.h"
#include "models/architectures/registry.h"
#include "models/layers/block_model.h"
#include "models/layers/initialise.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;

struct Settings {
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  bool biases = true;
};

const Schema<Settings> schema{
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the MLP, 0: four times the width.", "arXiv:1706.03762, section 3.3"),
    choice_field("activation", &Settings::activation, {"gelu", "relu", "relu2", "silu"}, "Activation of the MLP.", "arXiv:1606.08415"),
    field("biases", &Settings::biases, "Linears have biases, the mixer's too."),
};

struct Norm {
  Tensor weight, bias;  // [D]
  Norm() = default;
  Norm(ParameterMaker& make, const std::string& name, int64_t width)
      : weight(make.constant(name, {width}, 1)), bias(make.constant(name + "_bias", {width}, 0)) {}
  Tensor operator()(Tape& tape, const Tensor& x) const { return layer_norm(tape, x, weight, bias, kEpsilon); }
};

class GptStem : public Stem {
 public:
  GptStem(const ModelShape& shape, const Settings&, ParameterMaker& make) : Stem(TokenEmbedding(shape, make)), width_(shape.width) {}

  void finish(ParameterMaker& make) override { norm_ = Norm(make, "final_norm", width_); }
  Tensor final_norm(Tape& tape, const Tensor& x) const override { return norm_(tape, x); }

 private:
  int64_t width_;
  Norm norm_;
};

class GptBlock : public Block {
 public:
  GptBlock(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer,
           const Architecture::MakeMixer& make_mixer)
      : activation_(parse_activation(settings.activation)) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : 4 * width;
    const auto bias = [&](const std::string& name, int64_t size) { return settings.biases ? make.constant(name, {size}, 0) : Tensor(); };
    attention_norm_ = Norm(make, layer_name(layer, "attention_norm"), width);
    mixer_ = make_mixer(make, layer);
    mlp_norm_ = Norm(make, layer_name(layer, "mlp_norm"), width);
    up_ = make.normal(layer_name(layer, "up"), {inner, width}, kDeviation);
    up_bias_ = bias(layer_name(layer, "up_bias"), inner);
    down_ = make.normal(layer_name(layer, "down"), {width, inner}, residual_deviation(shape));
    down_bias_ = bias(layer_name(layer, "down_bias"), width);
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass, LayerState* state) const override {
    const Tensor h = add_mixed(tape, x, attention_norm_(tape, x), pass, state);
    return mlp(tape, mlp_norm_(tape, h), h);
  }

 private:
  /// x + W_2 f(W_1 u + b_1) + b_2
  Tensor mlp(Tape& tape, const Tensor& u, const Tensor& x) const {
    return linear(tape, activate(tape, linear(tape, u, up_, up_bias_), activation_), down_, down_bias_, x);
  }

  Activation activation_;
  Norm attention_norm_, mlp_norm_;
  Tensor up_, up_bias_, down_, down_bias_;  // [F, D], [F], [D, F], [D]
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "gpt",
    .title = "GPT",
    .paper = "Radford et al. 2019; as in arXiv:2505.18522, section 2",
    .settings = schema.settings(),
    .defaults = {{"position", "absolute"}},
    .variant = [](const nlohmann::json& values) { return std::string(values.at("biases").get<bool>() ? "" : "without biases"); },
    .make_stem = stem_of<GptStem>(schema),
    .make_block = block_of<GptBlock>(schema),
}};

}  // namespace
}  // namespace saccade

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
  Tensor operator()(Tape& tape, const Tensor& x) const { return layer_norm(tape, x, weight, bias, kEpsilon); }
};

struct Block {
  Norm attention_norm, mlp_norm;
  Tensor up, up_bias, down, down_bias;  // [F, D], [F], [D, F], [D]
};

class Gpt : public BlockModel {
 public:
  Gpt(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : BlockModel(TokenEmbedding(shape, make)), activation_(parse_activation(settings.activation)) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : 4 * width;
    const auto norm = [&](const std::string& name) {
      return Norm{make.constant(name, {width}, 1), make.constant(name + "_bias", {width}, 0)};
    };
    const auto bias = [&](const std::string& name, int64_t size) { return settings.biases ? make.constant(name, {size}, 0) : Tensor(); };
    for (int64_t l = 0; l < shape.layers; ++l) {
      Block& b = blocks_.emplace_back();
      b.attention_norm = norm(layer_name(l, "attention_norm"));
      mixers_.push_back(make_mixer(make, l));
      b.mlp_norm = norm(layer_name(l, "mlp_norm"));
      b.up = make.normal(layer_name(l, "up"), {inner, width}, kDeviation);
      b.up_bias = bias(layer_name(l, "up_bias"), inner);
      b.down = make.normal(layer_name(l, "down"), {width, inner}, residual_deviation(shape));
      b.down_bias = bias(layer_name(l, "down_bias"), width);
    }
    final_norm_ = norm("final_norm");
    parameters_ = make.take();
  }

 private:
  Tensor block(Tape& tape, size_t layer, const Tensor& x, Pass& pass, LayerState* state) const override {
    const Block& b = blocks_[layer];
    const Tensor h = add_mixed(tape, layer, x, b.attention_norm(tape, x), pass, state);
    return mlp(tape, b, b.mlp_norm(tape, h), h);
  }

  /// x + W_2 f(W_1 u + b_1) + b_2
  Tensor mlp(Tape& tape, const Block& b, const Tensor& u, const Tensor& x) const {
    return linear(tape, activate(tape, linear(tape, u, b.up, b.up_bias), activation_), b.down, b.down_bias, x);
  }

  Tensor final_norm(Tape& tape, const Tensor& x) const override { return final_norm_(tape, x); }

  Activation activation_;
  std::vector<Block> blocks_;
  Norm final_norm_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "gpt",
    .title = "GPT",
    .paper = "Radford et al. 2019; as in arXiv:2505.18522, section 2",
    .settings = schema.settings(),
    .defaults = {{"position", "absolute"}},
    .variant = [](const nlohmann::json& values) { return std::string(values.at("biases").get<bool>() ? "" : "without biases"); },
    .make_model = maker_of<Gpt>(schema),
}};

}  // namespace
}  // namespace saccade

// Transformer++ (arXiv:2505.18522, appendix A): RMSNorm, no biases, rotary positions, gated MLP, tied embedding.
//
//   x = E[token];   x += Mixer(RMSNorm x);   x += W_down( f(W_gate u) * (W_up u) ), u = RMSNorm x;   logits = E · RMSNorm x
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/gated_linear/gated_linear.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/norm/norm.h"
#include "models/architectures/registry.h"
#include "models/layers/block_model.h"
#include "models/layers/initialise.h"

namespace saccade {
namespace {

struct Settings {
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  double norm_epsilon = 1e-5;
  bool scaled_residual = true, tied = true;
};

const Schema<Settings> schema{
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the gated MLP, 0: 8/3 of the width, rounded up to 64.",
          "arXiv:2002.05202, section 2"),
    choice_field("activation", &Settings::activation, {"gelu", "silu"}, "Activation of the gate: GeGLU or SwiGLU.",
                 "arXiv:2505.18522, appendix A"),
    field("norm_epsilon", &Settings::norm_epsilon, {1e-12, 1e-2}, "Added to the mean square in the norms."),
    field(
        "scaled_residual", &Settings::scaled_residual,
        "Initial std of matrices that write to the residual stream, the mixer's and the MLP's, is divided by the root of twice the layers "
        "(GPT-2)."),
    field("tied", &Settings::tied, "Embedding and output matrix share their weights.", "arXiv:1608.05859"),
};

/// 8 D / 3 rounded up to a multiple of 64.
int64_t default_mlp_width(int64_t width) { return (8 * width + 3 * 64 - 1) / (3 * 64) * 64; }

struct Block {
  Tensor attention_norm, mlp_norm;  // [D]
  Tensor gate, up, down;            // [F, D], [F, D], [D, F]
};

class Llama : public BlockModel {
 public:
  Llama(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : BlockModel(TokenEmbedding(shape, make)), activation_(parse_activation(settings.activation)), epsilon_(settings.norm_epsilon) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : default_mlp_width(width);
    for (int64_t l = 0; l < shape.layers; ++l) {
      Block& b = blocks_.emplace_back();
      b.attention_norm = make.constant(layer_name(l, "attention_norm"), {width}, 1);
      mixers_.push_back(make_mixer(make, l));
      b.mlp_norm = make.constant(layer_name(l, "mlp_norm"), {width}, 1);
      b.gate = make.normal(layer_name(l, "gate"), {inner, width}, kDeviation);
      b.up = make.normal(layer_name(l, "up"), {inner, width}, kDeviation);
      b.down = make.normal(layer_name(l, "down"), {width, inner}, residual_deviation(shape));
    }
    final_norm_ = make.constant("final_norm", {width}, 1);
    if (!settings.tied) output_ = make.normal("output", {shape.vocabulary, width}, kDeviation);
    parameters_ = make.take();
  }

 private:
  Tensor block(Tape& tape, size_t layer, const Tensor& x, Pass& pass, LayerState* state) const override {
    const Block& b = blocks_[layer];
    const Tensor h = add_mixed(tape, layer, x, rms_norm(tape, x, b.attention_norm, epsilon_), pass, state);
    return mlp(tape, b, rms_norm(tape, h, b.mlp_norm, epsilon_), h);
  }

  /// x + W_down( f(W_gate u) * (W_up u) )
  Tensor mlp(Tape& tape, const Block& b, const Tensor& u, const Tensor& x) const {
    return linear(tape, gated_linear(tape, u, b.gate, b.up, activation_), b.down, {}, x);
  }

  Tensor final_norm(Tape& tape, const Tensor& x) const override { return rms_norm(tape, x, final_norm_, epsilon_); }

  Activation activation_;
  double epsilon_;
  std::vector<Block> blocks_;
  Tensor final_norm_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "llama",
    .title = "Transformer++",
    .paper = "Touvron et al. 2023, arXiv:2302.13971; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults = {{"position", "rotary"}},
    .variant =
        [](const nlohmann::json& values) {
          std::string words = is_usual(values, "activation") ? "" : values.at("activation") == "gelu" ? "GeGLU" : "SwiGLU";
          if (!values.at("tied").get<bool>()) add_words(words, "own output matrix");
          return words;
        },
    .make_model = maker_of<Llama>(schema),
}};

}  // namespace
}  // namespace saccade

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
    stem_too(field("norm_epsilon", &Settings::norm_epsilon, {1e-12, 1e-2}, "Added to the mean square in the norms.")),
    field("scaled_residual", &Settings::scaled_residual,
          "Initial std of matrices that write to the residual stream, the mixer's and the MLP's, is divided by the root of twice the "
          "layers (GPT-2)."),
    stem_only(field("tied", &Settings::tied, "Embedding and output matrix share their weights.", "arXiv:1608.05859")),
};

/// 8 D / 3 rounded up to a multiple of 64.
int64_t default_mlp_width(int64_t width) { return (8 * width + 3 * 64 - 1) / (3 * 64) * 64; }

class LlamaStem : public Stem {
 public:
  LlamaStem(const ModelShape& shape, const Settings& settings, ParameterMaker& make)
      : Stem(TokenEmbedding(shape, make)), shape_(shape), settings_(settings) {}

  void finish(ParameterMaker& make) override {
    norm_ = make.constant("final_norm", {shape_.width}, 1);
    if (!settings_.tied) output_ = make.normal("output", {shape_.vocabulary, shape_.width}, kDeviation);
  }
  Tensor final_norm(Tape& tape, const Tensor& x) const override { return rms_norm(tape, x, norm_, settings_.norm_epsilon); }

 private:
  ModelShape shape_;
  Settings settings_;
  Tensor norm_;  // [D]
};

class LlamaBlock : public Block {
 public:
  LlamaBlock(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer,
             const Architecture::MakeMixer& make_mixer)
      : activation_(parse_activation(settings.activation)), epsilon_(settings.norm_epsilon) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : default_mlp_width(width);
    attention_norm_ = make.constant(layer_name(layer, "attention_norm"), {width}, 1);
    mixer_ = make_mixer(make, layer);
    mlp_norm_ = make.constant(layer_name(layer, "mlp_norm"), {width}, 1);
    {
      const ParameterMaker::Stack stack(make, {inner, inner}, width);
      gate_ = make.normal(layer_name(layer, "gate"), {inner, width}, kDeviation);
      up_ = make.normal(layer_name(layer, "up"), {inner, width}, kDeviation);
    }
    down_ = make.normal(layer_name(layer, "down"), {width, inner}, residual_deviation(shape));
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass, LayerState* state) const override {
    const InputNorm norm{attention_norm_, epsilon_};
    const bool left = state && mixer_->norms_input();
    if (left) pass.input_norm = norm;
    return mlp(tape, add_mixed(tape, x, left ? x : norm(tape, x), pass, state));
  }

 private:
  /// x + W_down( f(W_gate u) * (W_up u) )
  Tensor mlp(Tape& tape, const Tensor& x) const {
    return linear(tape, gated_linear(tape, x, gate_, up_, activation_, {mlp_norm_, epsilon_}), down_, {}, x);
  }

  Activation activation_;
  double epsilon_;
  Tensor attention_norm_, mlp_norm_;  // [D]
  Tensor gate_, up_, down_;           // [F, D], [F, D], [D, F]
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
    .make_stem = stem_of<LlamaStem>(schema),
    .make_block = block_of<LlamaBlock>(schema),
}};

}  // namespace
}  // namespace saccade

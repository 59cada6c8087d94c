// Transformer++ (specification 1.2): RMSNorm, no biases, rotary positions, gated MLP, tied embedding.
//
//   x = E[token];   x += Mixer(RMSNorm x);   x += W_down( f(W_gate u) * (W_up u) ), u = RMSNorm x;   logits = E · RMSNorm x
#include "kernels/elementwise.h"
#include "kernels/gated_linear.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "models/layers/block.h"
#include "models/layers/initialise.h"
#include "models/layers/token_embedding.h"

namespace saccade {
namespace {

struct Settings {
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  double norm_epsilon = 1e-5;
  bool scaled_residual = true, tied = true;
};

const Schema<Settings> schema{
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the gated MLP, 0: 8/3 of the width, rounded up to 64.", "BC A"),
    choice_field("activation", &Settings::activation, {"gelu", "silu"}, "Of the gate: GeGLU or SwiGLU.", "BC A"),
    field("norm_epsilon", &Settings::norm_epsilon, {1e-12, 1e-2}, "Added to the mean square in the norms.", "BC A"),
    field("scaled_residual", &Settings::scaled_residual,
          "What ends in the residual stream starts smaller, by the root of twice the layers.", "BC A"),
    field("tied", &Settings::tied, "The embedding is the output matrix, too.", "BC A"),
};

/// 8 D / 3 rounded up to a multiple of 64.
int64_t default_mlp_width(int64_t width) { return (8 * width + 3 * 64 - 1) / (3 * 64) * 64; }

struct Block {
  Tensor attention_norm, mlp_norm;  // [D]
  std::unique_ptr<Mixer> mixer;
  Tensor gate, up, down;  // [F, D], [F, D], [D, F]
};

class Llama : public Model {
 public:
  Llama(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : embedding_(shape, make),
        output_(embedding_.table()),
        activation_(parse_activation(settings.activation)),
        epsilon_(settings.norm_epsilon) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : default_mlp_width(width);
    for (int64_t l = 0; l < shape.layers; ++l) {
      Block& b = blocks_.emplace_back();
      b.attention_norm = make.constant(layer_name(l, "attention_norm"), {width}, 1);
      b.mixer = make_mixer(make, l);
      b.mlp_norm = make.constant(layer_name(l, "mlp_norm"), {width}, 1);
      b.gate = make.normal(layer_name(l, "gate"), {inner, width}, kDeviation);
      b.up = make.normal(layer_name(l, "up"), {inner, width}, kDeviation);
      b.down = make.normal(layer_name(l, "down"), {width, inner}, settings.scaled_residual ? residual_deviation(shape) : kDeviation);
    }
    final_norm_ = make.constant("final_norm", {width}, 1);
    if (!settings.tied) output_ = make.normal("output", {shape.vocabulary, width}, kDeviation);
    parameters_ = make.take();
  }

  Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const override {
    Pass pass{probe, {}};
    return run(tape, tokens, pass, [this, &tape](size_t l, const Tensor& u, Pass& p) { return blocks_[l].mixer->forward(tape, u, p); });
  }

  DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    embedding_.check_capacity(capacity);
    DecodingState state = DecodingState::empty(arena, batch, capacity);
    for (const Block& b : blocks_) state.layers.push_back(b.mixer->begin(arena, dtype, batch, capacity));
    return state;
  }

  Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const override {
    Pass pass = state.pass(tokens.dim(1));
    const bool trimmed = state.last_only && state.batch == 1 && tokens.dim(1) > 1;
    const Tensor x = run(tape, tokens, pass, [&](size_t l, const Tensor& u, Pass& p) {
      p.last_only = trimmed && l + 1 == blocks_.size();
      return blocks_[l].mixer->extend(tape, u, p, *state.layers[l]);
    });
    state.advance(tape, tokens.dim(1));
    return x;
  }

  Tensor output_weight() const override { return output_; }

  double state_values_per_token() const override {
    double sum = 0;
    for (const Block& b : blocks_) sum += b.mixer->state_values_per_token();
    return sum;
  }

 private:
  /// mix(l, u, pass) is layer l's mixer, with pass.residual or without; the last one may give the last row only.
  template <class Mix>
  Tensor run(Tape& tape, const Tensor& tokens, Pass& pass, const Mix& mix) const {
    Tensor x = embedding_(tape, tokens, pass.position);  // [B, T, D]
    for (size_t l = 0; l < blocks_.size(); ++l)
      x = run_block(tape, x, pass, [=, this, &tape](const Tensor& in, Pass& p) { return block(tape, l, in, p, mix); });
    return rms_norm(tape, x, final_norm_, epsilon_);
  }

  template <class Mix>
  Tensor block(Tape& tape, size_t l, const Tensor& x, Pass& pass, const Mix& mix) const {
    const Block& b = blocks_[l];
    const Tensor u = rms_norm(tape, x, b.attention_norm, epsilon_);
    pass.residual = x;
    const Tensor mixed = mix(l, u, pass);
    const Tensor left = pass.take_residual(mixed.dim(1));
    Tensor h = left ? add(tape, left, mixed) : mixed;
    if (pass.last_only && h.dim(1) > 1) h = last_row(h);
    return mlp(tape, b, rms_norm(tape, h, b.mlp_norm, epsilon_), h);
  }

  /// x + W_down( f(W_gate u) * (W_up u) )
  Tensor mlp(Tape& tape, const Block& b, const Tensor& u, const Tensor& x) const {
    return linear(tape, gated_linear(tape, u, b.gate, b.up, activation_), b.down, {}, x);
  }

  TokenEmbedding embedding_;
  Tensor output_;
  Activation activation_;
  double epsilon_;
  std::vector<Block> blocks_;
  Tensor final_norm_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::host,
    .id = "llama",
    .title = "Transformer++",
    .paper = "Touvron et al. 2023, arXiv:2302.13971; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults = {{"position", "rotary"}},
    .variant =
        [](const nlohmann::json& values) {
          std::string words = is_usual(values, "activation") ? "" : values.at("activation") == "gelu" ? "GeGLU" : "SwiGLU";
          if (!values.at("tied").get<bool>()) words += words.empty() ? "own output matrix" : " own output matrix";
          return words;
        },
    .make_model =
        [](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, const Architecture::MakeMixer& mixer) {
          return std::make_unique<Llama>(shape, schema.read(values, "/architecture"), make, mixer);
        },
}};

}  // namespace
}  // namespace saccade

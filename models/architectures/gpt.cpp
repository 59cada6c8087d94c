// Transformer in the style of GPT-2 (specification 1.1): LayerNorm, biases, GELU MLP of width 4D, absolute positions, tied
// embedding.
//
//   x = E[token] + P[t];   x += Mixer(LN x);   x += W_2 f(W_1 LN x + b_1) + b_2;   logits = E · LN x
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "models/layers/block.h"
#include "models/layers/initialise.h"
#include "models/layers/token_embedding.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;

struct Settings {
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  bool biases = true;
};

const Schema<Settings> schema{
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the MLP, 0: four times the width.", "BC A"),
    choice_field("activation", &Settings::activation, {"gelu", "relu", "relu2", "silu"}, "Of the MLP.", "BC A"),
    field("biases", &Settings::biases, "Linears have biases, the mixer's too.", "BC A"),
};

struct Norm {
  Tensor gain, bias;  // [D]
  Tensor operator()(Tape& tape, const Tensor& x) const { return layer_norm(tape, x, gain, bias, kEpsilon); }
};

struct Block {
  Norm attention_norm, mlp_norm;
  std::unique_ptr<Mixer> mixer;
  Tensor up, up_bias, down, down_bias;  // [F, D], [F], [D, F], [D]
};

class Gpt : public Model {
 public:
  Gpt(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : embedding_(shape, make), activation_(parse_activation(settings.activation)) {
    const int64_t width = shape.width, inner = settings.mlp_width ? settings.mlp_width : 4 * width;
    const auto norm = [&](const std::string& name) {
      return Norm{make.constant(name, {width}, 1), make.constant(name + "_bias", {width}, 0)};
    };
    const auto bias = [&](const std::string& name, int64_t size) { return settings.biases ? make.constant(name, {size}, 0) : Tensor(); };
    for (int64_t l = 0; l < shape.layers; ++l) {
      Block& b = blocks_.emplace_back();
      b.attention_norm = norm(layer_name(l, "attention_norm"));
      b.mixer = make_mixer(make, l);
      b.mlp_norm = norm(layer_name(l, "mlp_norm"));
      b.up = make.normal(layer_name(l, "up"), {inner, width}, kDeviation);
      b.up_bias = bias(layer_name(l, "up_bias"), inner);
      b.down = make.normal(layer_name(l, "down"), {width, inner}, residual_deviation(shape));
      b.down_bias = bias(layer_name(l, "down_bias"), width);
    }
    final_norm_ = norm("final_norm");
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

  Tensor output_weight() const override { return embedding_.table(); }

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
    return final_norm_(tape, x);
  }

  template <class Mix>
  Tensor block(Tape& tape, size_t l, const Tensor& x, Pass& pass, const Mix& mix) const {
    const Block& b = blocks_[l];
    const Tensor u = b.attention_norm(tape, x);
    pass.residual = x;
    const Tensor mixed = mix(l, u, pass);
    const Tensor left = pass.take_residual(mixed.dim(1));
    Tensor h = left ? add(tape, left, mixed) : mixed;
    if (pass.last_only && h.dim(1) > 1) h = last_row(h);
    return mlp(tape, b, b.mlp_norm(tape, h), h);
  }

  /// x + W_2 f(W_1 u + b_1) + b_2
  Tensor mlp(Tape& tape, const Block& b, const Tensor& u, const Tensor& x) const {
    return linear(tape, activate(tape, linear(tape, u, b.up, b.up_bias), activation_), b.down, b.down_bias, x);
  }

  TokenEmbedding embedding_;
  Activation activation_;
  std::vector<Block> blocks_;
  Norm final_norm_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::host,
    .id = "gpt",
    .title = "GPT",
    .paper = "Radford et al. 2019; as in arXiv:2505.18522, section 2",
    .settings = schema.settings(),
    .defaults = {{"position", "absolute"}},
    .variant = [](const nlohmann::json& values) { return std::string(values.at("biases").get<bool>() ? "" : "without biases"); },
    .make_model =
        [](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, const Architecture::MakeMixer& mixer) {
          return std::make_unique<Gpt>(shape, schema.read(values, "/architecture"), make, mixer);
        },
}};

}  // namespace
}  // namespace saccade

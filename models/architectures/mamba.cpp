// The block of Mamba and Mamba-2 (arXiv:2312.00752, section 3.4): one residual branch a layer, no MLP.
//
//   x = E[token];   x += Mixer(RMSNorm x);   logits = W · RMSNorm x, W = E unless it has a matrix of its own
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "models/layers/block.h"
#include "models/layers/initialise.h"
#include "models/layers/token_embedding.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;

struct Settings {
  bool tied = true;
};

const Schema<Settings> schema{
    field("tied", &Settings::tied, "The embedding is the output matrix, too.", "arXiv:2312.00752, E.2"),
};

struct Block {
  Tensor norm;  // [D]
  std::unique_ptr<Mixer> mixer;
};

class Mamba : public Model {
 public:
  Mamba(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : embedding_(shape, make), output_(embedding_.table()) {
    for (int64_t l = 0; l < shape.layers; ++l) {
      const Tensor norm = make.constant(layer_name(l, "norm"), {shape.width}, 1);
      blocks_.push_back({norm, make_mixer(make, l)});
    }
    final_norm_ = make.constant("final_norm", {shape.width}, 1);
    if (!settings.tied) output_ = make.normal("output", {shape.vocabulary, shape.width}, kDeviation);
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
    const Tensor x =
        run(tape, tokens, pass, [&](size_t l, const Tensor& u, Pass& p) { return blocks_[l].mixer->extend(tape, u, p, *state.layers[l]); });
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
  /// mix(l, u, pass) is layer l's mixer.
  template <class Mix>
  Tensor run(Tape& tape, const Tensor& tokens, Pass& pass, const Mix& mix) const {
    Tensor x = embedding_(tape, tokens, pass.position);  // [B, T, D]
    for (size_t l = 0; l < blocks_.size(); ++l)
      x = run_block(tape, x, pass, [=, this, &tape](const Tensor& in, Pass& p) { return block(tape, l, in, p, mix); });
    return rms_norm(tape, x, final_norm_, kEpsilon);
  }

  template <class Mix>
  Tensor block(Tape& tape, size_t l, const Tensor& x, Pass& pass, const Mix& mix) const {
    pass.residual = x;
    const Tensor mixed = mix(l, rms_norm(tape, x, blocks_[l].norm, kEpsilon), pass);
    const Tensor left = pass.take_residual();
    return left ? add(tape, left, mixed) : mixed;
  }

  TokenEmbedding embedding_;
  Tensor output_, final_norm_;
  std::vector<Block> blocks_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::host,
    .id = "mamba",
    .title = "Mamba block",
    .paper = "Gu and Dao 2023, arXiv:2312.00752, section 3.4",
    .settings = schema.settings(),
    .gives_attention_title = false,
    .variant = [](const nlohmann::json& values) { return std::string(values.at("tied").get<bool>() ? "" : "own output matrix"); },
    .make_model =
        [](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, const Architecture::MakeMixer& mixer) {
          return std::make_unique<Mamba>(shape, schema.read(values, "/architecture"), make, mixer);
        },
}};

}  // namespace
}  // namespace saccade

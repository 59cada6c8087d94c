// The RWKV block as a host (arXiv:2404.05892, 2503.14456; "base capabilities", arXiv:2505.18522, section 5.3, puts other mixers in it):
// LayerNorm, one more on the embedding, a channel mix in place of the MLP, an output matrix of its own.
//
//   x = LN0 E[token];   x += Mixer(LN1 x);   x += ChannelMix(LN2 x);   logits = Head · LN x
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/norm.h"
#include "kernels/token_shift.h"
#include "kernels/transfer.h"
#include "models/layers/block.h"
#include "models/layers/channel_mix.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kEmbeddingBound = 1e-4;  ///< so small that LN0's epsilon counts: it multiplies by 316 rather than norms

struct Settings {
  std::string channel_mix = "7";
  int64_t mlp_width = 0;
  bool tied = false;
};

const Schema<Settings> schema{
    choice_field("channel_mix", &Settings::channel_mix, {"5", "6", "7"}, "Which RWKV's channel mix: 5 and 6 have a receptance gate.",
                 "arXiv:2404.05892, 3; 2503.14456, 3"),
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the channel mix, 0: 4 times the width (7) or 3.5 times (5, 6).",
          "arXiv:2404.05892, 3"),
    field("tied", &Settings::tied, "The output matrix is the embedding."),
};

struct Norm {
  Tensor gain, bias;  // [C]
  Norm() = default;
  Norm(ParameterMaker& make, const std::string& name, int64_t width)
      : gain(make.constant(name, {width}, 1)), bias(make.constant(name + "_bias", {width}, 0)) {}
  Tensor operator()(Tape& tape, const Tensor& x) const { return layer_norm(tape, x, gain, bias, kEpsilon); }
};

struct Block {
  Norm mixer_norm, channel_norm;
  std::unique_ptr<Mixer> mixer;
  ChannelMix channel_mix;
};

/// What a block keeps of a sequence: what its mixer keeps, and the last input of the channel mix.
struct BlockState : LayerState {
  std::unique_ptr<LayerState> mixer;
  Tensor before;  ///< [B, C]
};

class Rwkv : public Model {
 public:
  Rwkv(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : width_(shape.width), length_(shape.sequence_length) {
    const ChannelMix::Form form = ChannelMix::parse(settings.channel_mix);
    const int64_t inner = settings.mlp_width ? settings.mlp_width : ChannelMix::usual_width(form, width_);
    embedding_ = make.uniform("embedding", {shape.vocabulary, width_}, kEmbeddingBound);
    embedding_norm_ = Norm(make, "embedding_norm", width_);
    for (int64_t l = 0; l < shape.layers; ++l) {
      const Norm mixer_norm(make, layer_name(l, "mixer_norm"), width_);
      std::unique_ptr<Mixer> mixer = make_mixer(make, l);
      const Norm channel_norm(make, layer_name(l, "channel_norm"), width_);
      blocks_.push_back({mixer_norm, channel_norm, std::move(mixer), ChannelMix(shape, form, inner, make, l)});
    }
    final_norm_ = Norm(make, "final_norm", width_);
    const double ratio = static_cast<double>(shape.vocabulary) / static_cast<double>(width_);
    output_ = settings.tied ? embedding_ : make.orthogonal("output", {shape.vocabulary, width_}, 0.5 * std::sqrt(std::max(1.0, ratio)));
    parameters_ = make.take();
  }

  Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const override {
    Pass pass{probe, {}};
    Tensor x = embedding_norm_(tape, embedding(tape, embedding_, tokens));  // [B, T, C]
    for (const Block& b : blocks_)
      x = run_block(tape, x, pass, [&tape, &b](const Tensor& in, Pass& p) {
        const Tensor h = add(tape, in, b.mixer->forward(tape, b.mixer_norm(tape, in), p));
        return add(tape, h, b.channel_mix(tape, b.channel_norm(tape, h)));
      });
    return final_norm_(tape, x);
  }

  DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    DecodingState state = DecodingState::empty(arena, batch, capacity);
    for (const Block& b : blocks_) {
      auto block = std::make_unique<BlockState>();
      block->mixer = b.mixer->begin(arena, dtype, batch, capacity);
      block->before = arena.allocate({batch, width_}, dtype);
      if (!arena.device().is_plan()) fill_zero(block->before);
      state.layers.push_back(std::move(block));
    }
    return state;
  }

  Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const override {
    Pass pass = state.pass(tokens.dim(1));
    Tensor x = embedding_norm_(tape, embedding(tape, embedding_, tokens));
    for (size_t l = 0; l < blocks_.size(); ++l) {
      const Block& b = blocks_[l];
      BlockState& kept = dynamic_cast<BlockState&>(*state.layers[l]);
      x = add(tape, x, b.mixer->extend(tape, b.mixer_norm(tape, x), pass, *kept.mixer));
      const Tensor u = b.channel_norm(tape, x);
      x = add(tape, x, b.channel_mix(tape, u, kept.before));
      replace_state(tape, kept.before, last_token(tape, u));
    }
    state.advance(tape, tokens.dim(1));
    return final_norm_(tape, x);
  }

  Tensor output_weight() const override { return output_; }

  double state_values_per_token() const override {
    double sum = static_cast<double>(width_) * static_cast<double>(blocks_.size()) / static_cast<double>(length_);
    for (const Block& b : blocks_) sum += b.mixer->state_values_per_token();
    return sum;
  }

 private:
  int64_t width_, length_;
  Tensor embedding_, output_;
  Norm embedding_norm_, final_norm_;
  std::vector<Block> blocks_;
};

void check(const ModelShape& shape, const nlohmann::json&, const std::string& pointer) {
  if (shape.position == "absolute")
    throw UsageError(pointer + "/position is \"absolute\"; expected none, alibi or rotary: the RWKV block has no table of positions");
}

/// The channel mix where it is not that of the mixer.
std::string variant(const nlohmann::json& values) {
  std::string words = is_usual(values, "channel_mix") ? "" : "channel mix " + values.at("channel_mix").get<std::string>();
  if (values.at("tied").get<bool>()) words += words.empty() ? "tied" : " tied";
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::host,
    .id = "rwkv",
    .title = "RWKV block",
    .paper = "Peng et al. 2024, arXiv:2404.05892; 2025, arXiv:2503.14456; as a host: arXiv:2505.18522, section 5.3",
    .settings = schema.settings(),
    .defaults = {{"position", "rotary"}},
    .gives_attention_title = false,
    .variant = variant,
    .check = check,
    .make_model =
        [](const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, const Architecture::MakeMixer& mixer) {
          return std::make_unique<Rwkv>(shape, schema.read(values, "/architecture"), make, mixer);
        },
}};

}  // namespace
}  // namespace saccade

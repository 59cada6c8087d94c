// The RWKV block (arXiv:2404.05892, 2503.14456; "base capabilities", arXiv:2505.18522, section 5.3, puts other mixers in it):
// LayerNorm, one more on the embedding, a channel mix in place of the MLP, an output matrix of its own.
//
//   x = LN0 E[token];   x += Mixer(LN1 x);   x += ChannelMix(LN2 x);   logits = Head · LN x
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/norm/norm.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "models/architectures/registry.h"
#include "models/layers/block_model.h"
#include "models/layers/channel_mix.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kEmbeddingBound = 1e-4;  ///< so small that LN0's epsilon counts: it multiplies by 316 rather than norms

struct Settings {
  std::string mixer_inputs = "plain", channel_mix = "7";
  int64_t mlp_width = 0;
  bool tied = false;
};

const Schema<Settings> schema{
    choice_field(
        "mixer_inputs", &Settings::mixer_inputs, {"plain", "shifted", "full"},
        "What a mixer with queries, keys and values keeps of RWKV-7's time mix: nothing; the token shift of its inputs; or that with "
        "the value residual, the group norm and the output gate. The paper does not say which.",
        "arXiv:2505.18522, section 5.3; arXiv:2503.14456, section 3"),
    choice_field("channel_mix", &Settings::channel_mix, {"5", "6", "7"}, "Which RWKV's channel mix: 5 and 6 have a receptance gate.",
                 "arXiv:2404.05892, section 3; arXiv:2503.14456, section 3"),
    field("mlp_width", &Settings::mlp_width, {0, 1 << 18}, "Width of the channel mix, 0: 4 times the width (7) or 3.5 times (5, 6).",
          "arXiv:2404.05892, section 3"),
    stem_only(field("tied", &Settings::tied, "The output matrix is the embedding.")),
};

struct Norm {
  Tensor weight, bias;  // [C]
  Norm() = default;
  Norm(ParameterMaker& make, const std::string& name, int64_t width)
      : weight(make.constant(name, {width}, 1)), bias(make.constant(name + "_bias", {width}, 0)) {}
  Tensor operator()(Tape& tape, const Tensor& x) const { return layer_norm(tape, x, weight, bias, kEpsilon); }
};

class RwkvStem : public Stem {
 public:
  RwkvStem(const ModelShape& shape, const Settings& settings, ParameterMaker& make)
      : Stem(TokenEmbedding(make.uniform("embedding", {shape.vocabulary, shape.width}, kEmbeddingBound))),
        shape_(shape),
        tied_(settings.tied),
        embedding_norm_(make, "embedding_norm", shape.width) {}

  void finish(ParameterMaker& make) override {
    norm_ = Norm(make, "final_norm", shape_.width);
    const double ratio = static_cast<double>(shape_.vocabulary) / static_cast<double>(shape_.width);
    if (!tied_) output_ = make.orthogonal("output", {shape_.vocabulary, shape_.width}, 0.5 * std::sqrt(std::max(1.0, ratio)));
  }
  Tensor embed(Tape& tape, const Tensor& tokens, const TokenPosition& position) const override {
    return embedding_norm_(tape, Stem::embed(tape, tokens, position));
  }
  Tensor final_norm(Tape& tape, const Tensor& x) const override { return norm_(tape, x); }

 private:
  ModelShape shape_;
  bool tied_;
  Norm embedding_norm_, norm_;
};

/// What a block keeps of a sequence: what its mixer keeps, and the last input of the channel mix.
struct BlockState : LayerState {
  std::unique_ptr<LayerState> mixer;
  Tensor before;  ///< [B, C]

  void each(const std::function<void(Tensor&, Kept)>& f) override {
    mixer->each(f);
    f(before, Kept::sum);
  }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override {
    auto part = std::make_unique<BlockState>();
    part->mixer = mixer->sequences(first, count);
    part->before = sequences_of(before, first, count);
    return part;
  }
};

class RwkvBlock : public Block {
 public:
  RwkvBlock(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer,
            const Architecture::MakeMixer& make_mixer)
      : width_(shape.width),
        length_(shape.sequence_length),
        shifted_(shape.mixer_inputs != "plain"),
        mixer_norm_(make, layer_name(layer, "mixer_norm"), width_) {
    const ChannelMix::Form form = ChannelMix::parse(settings.channel_mix);
    mixer_ = make_mixer(make, layer);
    channel_norm_ = Norm(make, layer_name(layer, "channel_norm"), width_);
    const int64_t inner = settings.mlp_width ? settings.mlp_width : ChannelMix::usual_width(form, width_);
    channel_mix_ = std::make_unique<ChannelMix>(shape, form, inner, make, layer);
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass, LayerState* state) const override {
    pass.last_only = false;  // the channel mix reads the token before, too
    BlockState* kept = dynamic_cast<BlockState*>(state);
    const Tensor h = add(tape, x, mixed(tape, mixer_norm_(tape, x), pass, kept ? kept->mixer.get() : nullptr));
    const Tensor u = channel_norm_(tape, h);
    const Tensor y = add(tape, h, (*channel_mix_)(tape, u, kept ? kept->before : Tensor()));
    if (kept) replace_state(tape, kept->before, last_token(tape, u));
    return y;
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    auto state = std::make_unique<BlockState>();
    state->mixer = Block::begin(arena, dtype, batch, capacity);
    state->before = zero_state(arena, {batch, width_}, dtype);
    return state;
  }

  double state_values_per_token() const override {
    return Block::state_values_per_token() + static_cast<double>((shifted_ ? 2 : 1) * width_) / static_cast<double>(length_);
  }

 private:
  int64_t width_, length_;
  bool shifted_;  ///< the mixer keeps its last input, too
  Norm mixer_norm_, channel_norm_;
  std::unique_ptr<ChannelMix> channel_mix_;
};

void check(const ModelShape& shape, const nlohmann::json& values, const std::string& pointer) {
  if (shape.mixer_inputs != "plain" && values.value("relation", "query-key") != "query-key")
    throw UsageError(pointer + "/mixer_inputs is \"" + shape.mixer_inputs + "\"; expected plain, since relation \"" +
                     values.at("relation").get<std::string>() + "\" takes keys from no input");
  if (shape.position == "absolute")
    throw UsageError(pointer + "/position is \"absolute\"; expected none, alibi or rotary: the RWKV block has no table of positions");
}

/// What the mixer keeps of the time mix, and the channel mix where it is not that of the mixer.
std::string variant(const nlohmann::json& values) {
  std::string words;
  const std::string inputs = values.value("mixer_inputs", "plain");
  if (inputs != "plain") add_words(words, inputs == "full" ? "full time mix" : "token shift");
  if (!is_usual(values, "channel_mix")) add_words(words, "channel mix " + values.at("channel_mix").get<std::string>());
  if (values.at("tied").get<bool>()) add_words(words, "tied");
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "rwkv",
    .title = "RWKV block",
    .paper = "Peng et al. 2024, arXiv:2404.05892; 2025, arXiv:2503.14456; with other mixers: arXiv:2505.18522, section 5.3",
    .settings = schema.settings(),
    .defaults = {{"position", "rotary"}},
    .gives_attention_title = false,
    .variant = variant,
    .check = check,
    .make_stem = stem_of<RwkvStem>(schema),
    .make_block = block_of<RwkvBlock>(schema),
}};

}  // namespace
}  // namespace saccade

// The block of Mamba and Mamba-2 (arXiv:2312.00752, section 3.4): one residual branch a layer, no MLP.
//
//   x = E[token];   x += Mixer(RMSNorm x);   logits = W · RMSNorm x, W = E unless it has a matrix of its own
#include "kernels/ops/norm/norm.h"
#include "models/architectures/registry.h"
#include "models/layers/block_model.h"
#include "models/layers/initialise.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;

struct Settings {
  bool tied = true;
};

const Schema<Settings> schema{
    stem_only(field("tied", &Settings::tied, "Embedding and output matrix share their weights.", "arXiv:2312.00752, appendix E.2")),
};

class MambaStem : public Stem {
 public:
  MambaStem(const ModelShape& shape, const Settings& settings, ParameterMaker& make)
      : Stem(TokenEmbedding(shape, make)), shape_(shape), tied_(settings.tied) {}

  void finish(ParameterMaker& make) override {
    norm_ = make.constant("final_norm", {shape_.width}, 1);
    if (!tied_) output_ = make.normal("output", {shape_.vocabulary, shape_.width}, kDeviation);
  }
  Tensor final_norm(Tape& tape, const Tensor& x) const override { return rms_norm(tape, x, norm_, kEpsilon); }

 private:
  ModelShape shape_;
  bool tied_;
  Tensor norm_;  // [D]
};

class MambaBlock : public Block {
 public:
  MambaBlock(const ModelShape& shape, const Settings&, ParameterMaker& make, int64_t layer, const Architecture::MakeMixer& make_mixer)
      : norm_(make.constant(layer_name(layer, "norm"), {shape.width}, 1)) {
    mixer_ = make_mixer(make, layer);
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass, LayerState* state) const override {
    return add_mixed(tape, x, rms_norm(tape, x, norm_, kEpsilon), pass, state);
  }

 private:
  Tensor norm_;  // [D]
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "mamba",
    .title = "Mamba block",
    .paper = "Gu and Dao 2023, arXiv:2312.00752, section 3.4",
    .settings = schema.settings(),
    .gives_attention_title = false,
    .variant = [](const nlohmann::json& values) { return std::string(values.at("tied").get<bool>() ? "" : "own output matrix"); },
    .make_stem = stem_of<MambaStem>(schema),
    .make_block = block_of<MambaBlock>(schema),
}};

}  // namespace
}  // namespace saccade

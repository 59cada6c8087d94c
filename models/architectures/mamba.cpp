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
    field("tied", &Settings::tied, "Embedding and output matrix share their weights.", "arXiv:2312.00752, appendix E.2"),
};

class Mamba : public BlockModel {
 public:
  Mamba(const ModelShape& shape, const Settings& settings, ParameterMaker& make, const Architecture::MakeMixer& make_mixer)
      : BlockModel(TokenEmbedding(shape, make)) {
    for (int64_t l = 0; l < shape.layers; ++l) {
      norms_.push_back(make.constant(layer_name(l, "norm"), {shape.width}, 1));
      mixers_.push_back(make_mixer(make, l));
    }
    final_norm_ = make.constant("final_norm", {shape.width}, 1);
    if (!settings.tied) output_ = make.normal("output", {shape.vocabulary, shape.width}, kDeviation);
    parameters_ = make.take();
  }

 private:
  Tensor block(Tape& tape, size_t layer, const Tensor& x, Pass& pass, LayerState* state) const override {
    return add_mixed(tape, layer, x, rms_norm(tape, x, norms_[layer], kEpsilon), pass, state);
  }

  Tensor final_norm(Tape& tape, const Tensor& x) const override { return rms_norm(tape, x, final_norm_, kEpsilon); }

  std::vector<Tensor> norms_;  // [D]
  Tensor final_norm_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::block,
    .id = "mamba",
    .title = "Mamba block",
    .paper = "Gu and Dao 2023, arXiv:2312.00752, section 3.4",
    .settings = schema.settings(),
    .gives_attention_title = false,
    .variant = [](const nlohmann::json& values) { return std::string(values.at("tied").get<bool>() ? "" : "own output matrix"); },
    .make_model = maker_of<Mamba>(schema),
}};

}  // namespace
}  // namespace saccade

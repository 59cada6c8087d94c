// DeltaNet (Yang et al. 2024, arXiv:2406.06484), as in "base capabilities" (arXiv:2505.18522), appendix A.
//
//   q, k, v = silu(conv(W x)),  q and k unit vectors,  β = σ(W_β x) or 2 σ(W_β x)
//   S_t = S_{t−1} + k_t (β_t (v_t − S_{t−1}ᵀ k_t))ᵀ      o_t = S_tᵀ q_t / √K      out = W_o RMSNorm(o)
#include "kernels/ops/delta_rule/delta_rule.h"

#include "kernels/ops/linear/linear.h"
#include "kernels/ops/norm/norm.h"
#include "models/architectures/registry.h"
#include "models/layers/delta_heads.h"
#include "models/layers/initialise.h"
#include "models/suggest.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-6;

struct Settings {
  int64_t filter = 4;
  bool convolution = true;
  bool negative_eigenvalues = false;
};

const Schema<Settings> schema{
    field("filter", &Settings::filter, {1, 64}, "Kernel size of the causal convolutions, in tokens.", "arXiv:2406.06484, section 3.4"),
    field("convolution", &Settings::convolution, "Causal convolutions of queries, keys and values.", "arXiv:2406.06484, table 2"),
    field("negative_eigenvalues", &Settings::negative_eigenvalues,
          "β = 2 σ(W_β x): a token may turn what stands along its key round, not only take it away (parity needs that).",
          "arXiv:2411.12537, section 4.1"),
};

class DeltaNetMixer : public DeltaMixer {
 public:
  DeltaNetMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : DeltaMixer(shape.sequence_length, {{shape.width, shape.heads, shape.head_width(), shape.head_width(),
                                            settings.convolution ? settings.filter : 0, settings.negative_eigenvalues},
                                           make,
                                           layer}),
        norm_(make.constant(layer_name(layer, "output_norm"), {shape.head_width()}, 1)),
        output_(make.normal(layer_name(layer, "output"), {shape.width, shape.width}, kDeviation)) {}

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, DeltaHeads::State* state) const override {
    std::vector<Tensor> more;
    const DeltaRule rule = heads_(tape, x, pass, state, more);
    const Tensor o = rms_norm(tape, delta_rule(tape, rule).o, norm_, kEpsilon);  // [B, T, H, V]
    if (pass.probe) heads_.report(tape, rule, *pass.probe);
    return linear(tape, o.reshape(x.shape()), output_, {}, pass.take_residual());
  }

  Tensor norm_, output_;
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "deltanet",
    .title = "DeltaNet",
    .paper = "Yang et al. 2024, arXiv:2406.06484; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults =
        {{"position", nullptr}, {"rotary_base", nullptr}, {"activation", "silu"}, {"norm_epsilon", 1e-6}, {"scaled_residual", false}},
    .variant =
        [](const nlohmann::json& values) {
          std::string words = values.at("convolution").get<bool>() ? "" : "without convolution";
          if (values.at("negative_eigenvalues").get<bool>()) add_words(words, "eigenvalues to −1");
          return words;
        },
    .make_mixer = maker_of<DeltaNetMixer>(schema),
}};

}  // namespace
}  // namespace saccade

// Top-1 Element Selection, "base capabilities" (arXiv:2505.18522) section 4.
//
//   a(t) = argmax_{j ≤ t} s_tj      o_t = v_{a(t)}      backward through softmax(s) (straight-through)
#include "kernels/ops/top1_element/top1_element.h"

#include "models/architectures/registry.h"
#include "models/layers/head_probe.h"
#include "models/layers/score_heads.h"

namespace saccade {
namespace {

struct Settings : ScoreSettings {
  Settings() : ScoreSettings("rms") {}
};

const Schema<Settings> schema{qk_norm_field<Settings>(), temperature_field<Settings>()};

class Top1ElementMixer : public Mixer {
 public:
  Top1ElementMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : heads_(shape, settings, make, layer) {}

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override {
    const auto [q, k, v] = heads_(tape, x, pass);
    ForcedChoice forced;
    if (const auto c = pass.take(heads_.layer(), Counterfactual::Kind::force, v.dim(2))) forced = {c->head, c->query, c->source};
    const Top1Element selection = top1_element(tape, q, k, v, heads_.score(), pass.probe && pass.probe->wants_statistics(), forced);
    if (pass.probe) report(tape, q, k, selection, *pass.probe);
    return heads_.output(tape, selection.o, pass);
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    return std::make_unique<HeadCache>(heads_.begin(arena, dtype, batch, capacity));
  }

  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    HeadCache& cache = dynamic_cast<HeadCache&>(state);
    const auto [q, k, v] = heads_.extend(tape, x, pass, cache);
    const bool prompt = pass.position.first == 0 && !pass.last_only;
    const Tensor o = prompt ? top1_element(tape, q, k, v, heads_.score()).o
                            : cached_top1_element(tape, q, cache.k, cache.v, heads_.score(), pass.queries(x.dim(1))).o;
    return heads_.output(tape, o, pass);
  }

  bool norms_input() const override { return true; }

  double state_values_per_token() const override { return static_cast<double>(heads_.kept_per_token()); }

 private:
  void report(Tape& tape, const Tensor& q, const Tensor& k, const Top1Element& selection, Probe& probe) const {
    HeadProbe heads(probe, heads_.layer());
    const Shape& bht = selection.selected.shape();
    const std::vector<double> selected = heads.values(selection.selected);
    const auto distance = [&](int64_t b, int64_t h, int64_t t) {
      return static_cast<double>(t) - selected[static_cast<size_t>((b * bht[1] + h) * bht[2] + t)];
    };
    if (heads.wants_statistics()) {
      heads.entropy(selection.entropy);
      heads.mean("distance", "tokens", bht, distance);
      heads.mean("outside_256", "1", bht, [&](int64_t b, int64_t h, int64_t t) { return distance(b, h, t) >= kNear ? 1.0 : 0.0; });
      heads.chose(selection.selected);
    }
    if (heads.wants_maps()) {
      heads.selects({Selection::Unit::element, 1});
      heads.map(MapKind::weights, {bht[1], bht[2], bht[2]}, [&] { return one_hot(selected, bht); });
      heads.map(MapKind::soft_weights, attention_weights(tape, q, k, heads_.score(), 0));
      heads.map_of_first(MapKind::selected, selection.selected);
    }
  }

  /// [H, T, T] of sequence 0.
  static std::vector<float> one_hot(const std::vector<double>& selected, const Shape& bht) {
    const auto rows = static_cast<size_t>(bht[1] * bht[2]), length = static_cast<size_t>(bht[2]);
    std::vector<float> weights(rows * length);
    for (size_t row = 0; row < rows; ++row) weights[row * length + static_cast<size_t>(selected[row])] = 1;
    return weights;
  }

  ScoreHeads heads_;
};

std::string variant(const nlohmann::json& values) { return score_variant(schema.read(values, ""), Settings()); }

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "top1_element",
    .title = "Top-1 Element",
    .paper = "arXiv:2505.18522, section 4",
    .settings = schema.settings(),
    .takes_block_inputs = true,
    .variant = variant,
    .make_mixer = maker_of<Top1ElementMixer>(schema),
}};

}  // namespace
}  // namespace saccade

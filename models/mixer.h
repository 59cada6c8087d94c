#pragma once
#include <map>
#include <memory>
#include <string>

#include "models/model.h"

namespace saccade {

/// In ModelShape::earlier: layers whose values are blended with those of the first such layer (arXiv:2503.14456, section 3).
inline constexpr const char* kBlendedValues = "blended values";

/// What every part of a model needs to know of the whole.
struct ModelShape {
  int64_t vocabulary = 256;
  int64_t sequence_length = 512;  ///< longest sequence: size of position tables
  int64_t width = 256, layers = 4, heads = 4;
  double rotary_base = 10000;
  std::string position = "rotary";  ///< none, absolute, alibi, alibi-released, rotary; the block's default unless set
  bool biases = false;              ///< whether linears have biases; the block's setting
  /// Layers in front of this one that hold the mixer of that id, where other mixers stand between: what a mixer hands on from layer to
  /// layer counts by its own (RWKV-7's first values, Based's layout). A mixer that is not named stands in every layer.
  std::map<std::string, int64_t> earlier = {};
  bool scaled_residual = true;  ///< whether matrices that write to the residual stream start smaller; the block's setting
  /// What a mixer with queries, keys and values takes from the block and leaves to it (models/layers/time_mix.h): plain, shifted, full; the
  /// block's setting.
  std::string mixer_inputs = "plain";
  int64_t head_width() const { return width / heads; }
  /// Which of the layers with mixer `id` layer `layer` is, from 0.
  int64_t nth(const std::string& id, int64_t layer) const {
    const auto counted = earlier.find(id);
    return counted == earlier.end() ? layer : counted->second;
  }
  /// One more in front of what follows in the same layer.
  void hold(const std::string& id, int64_t layer) { earlier[id] = nth(id, layer) + 1; }
};

/// Moves information between positions inside one layer. x [B, T, D] → [B, T, D].
class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const = 0;
  /// An empty state (see Model::begin). Throws UsageError where the mixer cannot decode incrementally.
  virtual std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const;
  /// `forward` of the n tokens x [B, n, D] that follow those in the state, which then holds them too. With pass.last_only and one
  /// sequence it may be the last row, [1, 1, D].
  virtual Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const;
  /// Whether `extend` norms its input, where the block leaves that to it (Pass::input_norm).
  virtual bool norms_input() const { return false; }
  /// Numbers that decoding keeps per token of a context as long as the sequence, in this layer.
  virtual double state_values_per_token() const = 0;
};

}  // namespace saccade

#pragma once
#include "models/layers/block.h"
#include "models/layers/token_embedding.h"

namespace saccade {

/// A model whose layers hold a mixer each. A subclass writes its block, the pre-norm block that carries the mixer, and its final norm.
class BlockModel : public Model {
 public:
  Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const final;
  DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const final;
  Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const final;
  Tensor output_weight() const final { return output_; }
  double state_values_per_token() const override;

 protected:
  explicit BlockModel(TokenEmbedding embedding);

  /// x of the first block, [B, T, D].
  virtual Tensor embed(Tape& tape, const Tensor& tokens, const TokenPosition& position) const;
  /// Block `layer`. With a state: of the tokens that follow those in it; where pass.last_only it may give the last row only.
  virtual Tensor block(Tape& tape, size_t layer, const Tensor& x, Pass& pass, LayerState* state) const = 0;
  virtual Tensor final_norm(Tape& tape, const Tensor& x) const = 0;
  /// What block `layer` keeps of a sequence.
  virtual std::unique_ptr<LayerState> begin_layer(size_t layer, Arena& arena, DType dtype, int64_t batch, int64_t capacity) const;

  /// Mixer(u) of a layer.
  Tensor mixed(Tape& tape, size_t layer, const Tensor& u, Pass& pass, LayerState* state) const;
  /// x + Mixer(u) of a layer; the last row alone where pass.last_only.
  Tensor add_mixed(Tape& tape, size_t layer, const Tensor& x, const Tensor& u, Pass& pass, LayerState* state) const;

  std::vector<std::unique_ptr<Mixer>> mixers_;
  Tensor output_;  ///< [V, D], the embedding unless the subclass makes its own

 private:
  Tensor run(Tape& tape, const Tensor& tokens, Pass& pass, const DecodingState* state) const;

  TokenEmbedding embedding_;
};

}  // namespace saccade

#pragma once
#include <functional>

#include "models/layers/block.h"
#include "models/layers/token_embedding.h"
#include "models/mixer.h"

namespace saccade {

/// A pre-norm block that carries a mixer: one layer of a BlockModel. A subclass makes its parameters and its mixer, and says what it
/// computes. Blocks of several kinds may stand in one model.
class Block {
 public:
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// x [B, T, D] → [B, T, D]. With a state: of the tokens that follow those in it; where pass.last_only it may give the last row only.
  virtual Tensor forward(Tape& tape, const Tensor& x, Pass& pass, LayerState* state) const = 0;
  /// What it keeps of a sequence, empty (see Model::begin).
  virtual std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const;
  /// Numbers that decoding keeps per token of a context as long as the sequence.
  virtual double state_values_per_token() const;

 protected:
  Block() = default;
  /// Mixer(u).
  Tensor mixed(Tape& tape, const Tensor& u, Pass& pass, LayerState* state) const;
  /// x + Mixer(u); the last row alone where pass.last_only.
  Tensor add_mixed(Tape& tape, const Tensor& x, const Tensor& u, Pass& pass, LayerState* state) const;

  std::unique_ptr<Mixer> mixer_;
};

/// What stands around the blocks of a model: the embedding in front of them, the final norm and the output matrix behind.
class Stem {
 public:
  virtual ~Stem() = default;
  Stem(const Stem&) = delete;
  Stem& operator=(const Stem&) = delete;

  /// Makes the parameters that come behind those of the blocks.
  virtual void finish(ParameterMaker& make) = 0;
  /// x of the first block, [B, T, D].
  virtual Tensor embed(Tape& tape, const Tensor& tokens, const TokenPosition& position) const;
  virtual Tensor final_norm(Tape& tape, const Tensor& x) const = 0;
  const Tensor& output_weight() const { return output_; }
  /// Throws UsageError when the position table is shorter than a sequence shall get.
  void check_capacity(int64_t capacity) const { embedding_.check_capacity(capacity); }

 protected:
  explicit Stem(TokenEmbedding embedding) : output_(embedding.table()), embedding_(std::move(embedding)) {}

  Tensor output_;  ///< [V, D], the embedding unless the subclass makes its own

 private:
  TokenEmbedding embedding_;
};

/// A model whose layers are blocks.
class BlockModel final : public Model {
 public:
  using MakeBlock = std::function<std::unique_ptr<Block>(ParameterMaker&, int64_t layer)>;
  BlockModel(std::unique_ptr<Stem> stem, int64_t layers, ParameterMaker& make, const MakeBlock& make_block);

  Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const override;
  DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override;
  Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const override;
  Tensor output_weight() const override { return stem_->output_weight(); }
  double state_values_per_token() const override;
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

 private:
  Tensor run(Tape& tape, const Tensor& tokens, Pass& pass, const DecodingState* state) const;

  std::unique_ptr<Stem> stem_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace saccade

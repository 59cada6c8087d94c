#pragma once
#include <limits>
#include <memory>
#include <span>

#include "kernels/engine/captured_graph.h"
#include "kernels/engine/staging.h"
#include "models/model.h"
#include "models/training/trainer.h"

namespace saccade {

/// A model's weights on one device for running forward only: no gradients, no moments.
class InferenceModel {
 public:
  /// `architecture` is resolved; weights are initialised from `seed`. Throws UsageError for a precision the device does not compute in.
  InferenceModel(const nlohmann::json& architecture, int64_t vocabulary, int64_t sequence_length, Device device,
                 const std::string& precision, uint64_t seed);
  /// Values from a training state (on the CPU; same names and shapes; throws DataError otherwise).
  void load(const std::vector<NamedTensor>& weights);

  /// Decoding chooses tokens below this only: what stands behind them is padding of the vocabulary. Without it all are chosen from.
  void choose_below(int64_t tokens) { tokens_ = tokens; }
  int64_t tokens() const { return tokens_; }

  /// Makes a tape compute as this model's own does (mixed precision).
  void prepare(Tape& tape) const;

  const Model& model() const { return *model_; }
  Arena& arena() { return arena_; }
  Tape& tape() { return tape_; }
  DType activations() const { return activations_; }

 private:
  void refresh_copies();

  Arena arena_;
  Tape tape_;
  DType activations_ = DType::f32;
  int64_t tokens_ = std::numeric_limits<int64_t>::max();
  std::unique_ptr<Model> model_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  ///< parameters and what products read instead (bf16)
};

/// One sequence in progress. On a GPU single tokens after the first piece are one captured graph. Only one decoder at a time may
/// use a model's arena.
class Decoder {
 public:
  /// Throws UsageError where the architecture cannot decode, or not `capacity` tokens.
  Decoder(InferenceModel& model, int64_t capacity);

  /// The tokens that follow; a prompt first. On a GPU the work may still be running when this returns.
  void feed(std::span<const int32_t> tokens);
  int64_t length() const { return state_.length; }
  /// Of the token after the last one that was fed. Waits for the device.
  std::vector<double> logits() const;

 private:
  /// Logits [V] behind the last of tokens i32 [1, n].
  Tensor last_logits(const Tensor& tokens);

  InferenceModel& model_;
  DecodingState state_;
  Tensor token_;  ///< i32 [1, 1]
  Staging next_token_;
  Tensor logits_, step_logits_;  ///< the latter is where the captured step writes
  cuda::CapturedGraph step_;
};

/// How the next token is drawn.
struct Sampling {
  double temperature = 1;  ///< 0: always the likeliest token
  int64_t top_k = 0;       ///< only the k likeliest (arXiv:1805.04833, section 5.4); 0: all
  double top_p = 1;        ///< of them only the likeliest that together have this probability (arXiv:1904.09751, section 3.1)
  uint64_t seed = 1;
};
/// The token that follows: the likeliest for temperature 0, else drawn from softmax(logits / temperature) over the tokens that are left.
/// Of equals the first is the likeliest. `index` counts draws of one seed.
int32_t choose_token(const std::vector<double>& logits, const Sampling& sampling, uint64_t index);

}  // namespace saccade

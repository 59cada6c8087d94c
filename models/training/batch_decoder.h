#pragma once
#include <atomic>
#include <functional>
#include <span>

#include "models/training/decoder.h"

namespace saccade {

/// Sequences in progress side by side, each of a length of its own, with the logits behind the last token of each. What stands in the other
/// places changes nothing of a sequence. On a GPU a step is one captured graph. Only one decoder at a time may use a model's arena.
class BatchDecoder {
 public:
  /// `sequences` empty places for up to `capacity` tokens each. Throws UsageError where the architecture cannot decode, or not so many.
  BatchDecoder(InferenceModel& model, int64_t sequences, int64_t capacity);

  int64_t places() const { return state_.batch; }
  /// A new sequence takes the place: its prompt, of one token or more. Throws UsageError where it is empty or does not fit.
  void start(int64_t place, std::span<const int32_t> prompt);
  /// The place is empty again.
  void leave(int64_t place);
  /// The token that follows at every place; what is given for empty ones does not matter, but must be a token. Throws UsageError where a
  /// sequence is full.
  void feed(std::span<const int32_t> tokens);

  int64_t length(int64_t place) const { return lengths_[static_cast<size_t>(place)]; }
  /// The first of the likeliest tokens behind the last one.
  int32_t likeliest(int64_t place) const;
  /// Of the token behind the last one.
  std::vector<double> logits(int64_t place) const;

 private:
  /// Keeps the logits behind hidden states [n, D] of places `first` ….
  void keep(const Tensor& hidden, int64_t first);

  InferenceModel& model_;
  DecodingState state_;
  std::vector<int64_t> lengths_;  ///< of empty places what was fed to them
  std::vector<bool> taken_;
  std::vector<int32_t> likeliest_;
  Tensor tokens_;  ///< i32 [B, 1]
  Staging next_tokens_;
  Tensor logits_, likeliest_on_device_;  ///< [B, V], i32 [B]
  cuda::CapturedGraph step_;
};

/// Sequences of `capacity` tokens, at most `wanted`, whose state fits into half of a GPU's free memory or 2 GiB of the CPU's; at least one.
int64_t places_that_fit(InferenceModel& model, int64_t capacity, int64_t wanted);

/// A prompt of one token or more, and how many tokens may follow.
struct Prompt {
  std::vector<int32_t> tokens;
  int64_t most = 0;
};
/// A token that is to be chosen: the `index`th behind prompt `which`.
struct NextToken {
  size_t which = 0;
  int64_t index = 0;
  int32_t likeliest = 0;
  std::function<std::vector<double>()> logits;
};
/// Goes on from prompts, at most `side_by_side` at once: the longest first, and where one has ended the next one takes its place
/// (continuous batching). `choose` gives the token that follows, or a negative number where the text ends; it is not asked for more than
/// `most`. Which prompts stand beside another changes nothing of it. Leaves off where `stop` is raised. Throws UsageError as BatchDecoder
/// does.
void continue_prompts(InferenceModel& model, std::span<const Prompt> prompts, int64_t side_by_side,
                      const std::function<int32_t(const NextToken&)>& choose, const std::atomic<bool>& stop);

}  // namespace saccade

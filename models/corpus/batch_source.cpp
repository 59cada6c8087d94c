#include <algorithm>
#include <vector>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/permutation.h"

namespace saccade {
namespace {

/// Sequences of length+1 tokens, each beginning where the one before has its last token.
int64_t sequences(const TokenStore& store, int64_t length) { return std::max<int64_t>(0, store.size() - 1) / length; }

}  // namespace

BatchSource::BatchSource(std::vector<std::shared_ptr<const TokenStore>> stores, int64_t sequence_length, uint64_t seed, bool shuffle)
    : stores_(std::move(stores)), length_(sequence_length), seed_(seed), shuffle_(shuffle) {
  if (length_ < 1) throw UsageError("a sequence must have at least 1 token, not " + std::to_string(length_));
  if (stores_.empty()) throw UsageError("no domain to take sequences from");
  for (const auto& store : stores_)
    if (sequences(*store, length_) == 0)
      throw DataError(store->label() + " has " + std::to_string(store->size()) + " tokens, but one sequence of length " +
                      std::to_string(length_) + " needs " + std::to_string(length_ + 1));
}

int64_t BatchSource::sequences_per_epoch() const {
  int64_t total = 0;
  for (const auto& store : stores_) total += sequences(*store, length_);
  return total;
}

void BatchSource::next(int64_t count, std::span<int32_t> tokens, std::span<int32_t> targets) {
  const auto size = static_cast<size_t>(count * length_);
  if (tokens.size() != size || targets.size() != size)
    throw Error("BatchSource::next: buffers of " + std::to_string(tokens.size()) + " and " + std::to_string(targets.size()) +
                " tokens, expected " + std::to_string(size));
  const auto total = static_cast<uint64_t>(sequences_per_epoch());
  std::vector<int32_t> window(static_cast<size_t>(length_) + 1);
  for (int64_t row = 0; row < count; ++row) {
    const uint64_t place = position_ + static_cast<uint64_t>(row), epoch = place / total;
    const uint64_t in_epoch = place % total;
    auto sequence = static_cast<int64_t>(shuffle_ ? Permutation(total, seed_, "data order", epoch)(in_epoch) : in_epoch);
    auto store = stores_.begin();
    for (; sequence >= sequences(**store, length_); ++store) sequence -= sequences(**store, length_);
    (*store)->read(sequence * length_, window);
    std::copy(window.begin(), window.end() - 1, tokens.begin() + row * length_);
    std::copy(window.begin() + 1, window.end(), targets.begin() + row * length_);
  }
  position_ += static_cast<uint64_t>(count);
}

}  // namespace saccade

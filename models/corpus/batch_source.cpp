#include <algorithm>
#include <vector>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/permutation.h"

namespace saccade {
namespace {

/// Sequences of length+1 tokens, each beginning where the one before has its last token.
int64_t sequences(const TokenStore& store, int64_t length) { return std::max<int64_t>(0, store.size() - 1) / length; }

/// Whole numbers in proportion to the weights that add up to `total`: rounded down, the rest to the largest remainders.
std::vector<int64_t> quotas(const std::vector<double>& weights, int64_t total) {
  double sum = 0;
  for (const double w : weights) sum += w;
  std::vector<int64_t> parts;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * static_cast<double>(total);
    parts.push_back(static_cast<int64_t>(exact));
    left -= parts.back();
    remainders.emplace_back(static_cast<double>(parts.back()) - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());  // the largest first, of equal ones the first store
  for (int64_t i = 0; i < left; ++i) ++parts[remainders[static_cast<size_t>(i)].second];
  return parts;
}

}  // namespace

BatchSource::BatchSource(std::vector<std::shared_ptr<const TokenStore>> stores, int64_t sequence_length, uint64_t seed, bool shuffle,
                         const std::vector<double>& weights)
    : stores_(std::move(stores)), length_(sequence_length), seed_(seed), shuffle_(shuffle) {
  if (length_ < 1) throw UsageError("a sequence must have at least 1 token, not " + std::to_string(length_));
  if (stores_.empty()) throw UsageError("no domain to take sequences from");
  for (const auto& store : stores_)
    if (sequences(*store, length_) == 0)
      throw DataError(store->label() + " has " + std::to_string(store->size()) + " tokens, but one sequence of length " +
                      std::to_string(length_) + " needs " + std::to_string(length_ + 1));
  if (weights.empty()) return;
  if (weights.size() != stores_.size()) throw UsageError("a weight is needed for every domain, or none");
  quotas_ = quotas(weights, kWeightedBlock);
}

std::vector<int64_t> BatchSource::sizes() const {
  std::vector<int64_t> all;
  for (const auto& store : stores_) all.push_back(sequences(*store, length_));
  return all;
}

BatchSource::Place BatchSource::share_of(uint64_t number) const {
  auto rest = static_cast<int64_t>(number);
  size_t store = 0;
  for (; rest >= quotas_[store]; ++store) rest -= quotas_[store];
  return {store, rest};
}

std::vector<int64_t> BatchSource::taken(uint64_t position) const {
  const uint64_t block = position / kWeightedBlock;
  const Permutation order(kWeightedBlock, seed_, "domain order", block);
  std::vector<int64_t> counts;
  for (const int64_t quota : quotas_) counts.push_back(static_cast<int64_t>(block) * quota);
  for (uint64_t i = 0; i < position % kWeightedBlock; ++i) ++counts[share_of(shuffle_ ? order(i) : i).store];
  return counts;
}

BatchSource::Place BatchSource::weighted_place(uint64_t position) const {
  const uint64_t block = position / kWeightedBlock, in_block = position % kWeightedBlock;
  Place place = share_of(shuffle_ ? Permutation(kWeightedBlock, seed_, "domain order", block)(in_block) : in_block);
  const auto number = static_cast<uint64_t>(static_cast<int64_t>(block) * quotas_[place.store] + place.sequence);
  const auto size = static_cast<uint64_t>(sequences(*stores_[place.store], length_));
  const Permutation order(size, seed_, "data order of " + stores_[place.store]->label(), number / size);
  place.sequence = static_cast<int64_t>(shuffle_ ? order(number % size) : number % size);
  return place;
}

BatchSource::Place BatchSource::place(uint64_t position) const {
  if (weighted()) return weighted_place(position);
  const auto total = static_cast<uint64_t>(sequences_per_epoch());
  const uint64_t epoch = position / total, in_epoch = position % total;
  Place place{0, static_cast<int64_t>(shuffle_ ? Permutation(total, seed_, "data order", epoch)(in_epoch) : in_epoch)};
  for (; place.sequence >= sequences(*stores_[place.store], length_); ++place.store)
    place.sequence -= sequences(*stores_[place.store], length_);
  return place;
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
  std::vector<int32_t> window(static_cast<size_t>(length_) + 1);
  for (int64_t row = 0; row < count; ++row) {
    const Place from = place(position_ + static_cast<uint64_t>(row));
    stores_[from.store]->read(from.sequence * length_, window);
    std::copy(window.begin(), window.end() - 1, tokens.begin() + row * length_);
    std::copy(window.begin() + 1, window.end(), targets.begin() + row * length_);
  }
  position_ += static_cast<uint64_t>(count);
}

}  // namespace saccade

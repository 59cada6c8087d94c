#include <algorithm>
#include <vector>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/permutation.h"

namespace saccade {
namespace {

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

Packing parse_packing(const std::string& name) {
  if (name != "packed" && name != "document") throw UsageError("\"" + name + "\" is no packing; expected packed or document");
  return name == "document" ? Packing::document : Packing::packed;
}

BatchSource::BatchSource(std::vector<std::shared_ptr<const TokenStore>> stores, int64_t sequence_length, uint64_t seed, bool shuffle,
                         const std::vector<double>& weights, Packing packing)
    : stores_(std::move(stores)), length_(sequence_length), seed_(seed), shuffle_(shuffle), packing_(packing) {
  if (length_ < 1) throw UsageError("a sequence must have at least 1 token, not " + std::to_string(length_));
  if (stores_.empty()) throw UsageError("no domain to take sequences from");
  for (const auto& store : stores_)
    if (sequences(*store) == 0)
      throw DataError(store->label() + " has " +
                      (packing_ == Packing::document ? "no document"
                                                     : std::to_string(store->size()) + " tokens, but one sequence of length " +
                                                           std::to_string(length_) + " needs " + std::to_string(length_ + 1)));
  if (weights.empty()) return;
  if (weights.size() != stores_.size()) throw UsageError("a weight is needed for every domain, or none");
  quotas_ = quotas(weights, kWeightedBlock);
}

/// Packed ones have length+1 tokens, each beginning where the one before has its last token.
int64_t BatchSource::sequences(const TokenStore& store) const {
  if (packing_ == Packing::document) return static_cast<int64_t>(store.document_ends().size());
  return std::max<int64_t>(0, store.size() - 1) / length_;
}

BatchSource::Range BatchSource::targets_of(const Place& place) const {
  if (packing_ == Packing::packed) return {place.sequence * length_ + 1, (place.sequence + 1) * length_ + 1};
  const std::vector<int64_t>& ends = stores_[place.store]->document_ends();
  const auto document = static_cast<size_t>(place.sequence);
  const int64_t begin = document == 0 ? 0 : ends[document - 1];
  return {begin, std::min(begin + length_, ends[document])};
}

int64_t BatchSource::targets(uint64_t first, int64_t count) const {
  if (packing_ == Packing::packed) return count * length_;
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Range range = targets_of(place(first + static_cast<uint64_t>(i)));
    total += range.end - range.begin;
  }
  return total;
}

std::vector<int64_t> BatchSource::sizes() const {
  std::vector<int64_t> all;
  for (const auto& store : stores_) all.push_back(sequences(*store));
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
  const auto size = static_cast<uint64_t>(sequences(*stores_[place.store]));
  const Permutation order(size, seed_, "data order of " + stores_[place.store]->label(), number / size);
  place.sequence = static_cast<int64_t>(shuffle_ ? order(number % size) : number % size);
  return place;
}

BatchSource::Place BatchSource::place(uint64_t position) const {
  if (weighted()) return weighted_place(position);
  const auto total = static_cast<uint64_t>(sequences_per_epoch());
  const uint64_t epoch = position / total, in_epoch = position % total;
  Place place{0, static_cast<int64_t>(shuffle_ ? Permutation(total, seed_, "data order", epoch)(in_epoch) : in_epoch)};
  for (; place.sequence >= sequences(*stores_[place.store]); ++place.store) place.sequence -= sequences(*stores_[place.store]);
  return place;
}

int64_t BatchSource::sequences_per_epoch() const {
  int64_t total = 0;
  for (const auto& store : stores_) total += sequences(*store);
  return total;
}

void BatchSource::next(int64_t count, std::span<int32_t> tokens, std::span<int32_t> targets) {
  const auto size = static_cast<size_t>(count * length_);
  if (tokens.size() != size || targets.size() != size)
    throw Error("BatchSource::next: buffers of " + std::to_string(tokens.size()) + " and " + std::to_string(targets.size()) +
                " tokens, expected " + std::to_string(size));
  std::vector<int32_t> window;  // the token before the first target, then the targets
  for (int64_t row = 0; row < count; ++row) {
    const Place from = place(position_ + static_cast<uint64_t>(row));
    const TokenStore& store = *stores_[from.store];
    const Range range = targets_of(from);
    window.assign(static_cast<size_t>(range.end - range.begin + 1), store.end_of_text());
    const bool marked = packing_ == Packing::document;  // begins with end-of-text, which is there already
    store.read(range.begin - (marked ? 0 : 1), std::span(window).subspan(marked ? 1 : 0));
    const auto first_token = tokens.begin() + row * length_, first_target = targets.begin() + row * length_;
    std::fill(std::copy(window.begin(), window.end() - 1, first_token), first_token + length_, store.end_of_text());
    std::fill(std::copy(window.begin() + 1, window.end(), first_target), first_target + length_, kNoTarget);
  }
  position_ += static_cast<uint64_t>(count);
}

}  // namespace saccade

#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/engine/transfer.h"
#include "models/model.h"

namespace saccade {

/// Reports about one layer's heads: numbers averaged over queries, and maps of sequence 0.
class HeadProbe {
 public:
  HeadProbe(Probe& probe, int64_t layer) : probe_(probe), layer_(layer) {}

  bool wants_statistics() const { return probe_.wants_statistics(); }
  bool wants_maps() const { return probe_.wants_maps(); }

  /// `entropy` (nats) and `entropy_normalized` (H_t / ln(t+1) for t ≥ 1) of entropy [B, H, T].
  void entropy(const Tensor& entropy);
  /// The mean over sequences and queries of value(b, h, t), NaNs left out; NaN when nothing is left.
  using Value = std::function<double(int64_t b, int64_t h, int64_t t)>;
  void mean(const std::string& name, const std::string& unit, const Shape& bht, const Value& value);
  void heads(const std::string& name, const std::string& unit, std::vector<double> heads);

  /// `distance` (tokens back, weighted) and `outside_256` (share of weight further back than the last 256 positions) from
  /// the weights of each sequence: weights(b) is [H, T, T]. Left out for sequences longer than kLongestWeights.
  void reads(const Shape& bht, const std::function<Tensor(int64_t sequence)>& weights);
  /// The same for weights of any sign, from |w| of each query made to sum to one; and the entropy of that (`entropy`,
  /// `entropy_normalized`). Queries without any weight are left out.
  void signed_reads(const Shape& bht, const std::function<Tensor(int64_t sequence)>& weights);
  static constexpr int64_t kLongestWeights = 2048;

  /// What is wanted of weights(b) [H, T, T]: `entropy` and reads, and the map `weights`.
  void weights(const Tensor& entropy, const std::function<Tensor(int64_t sequence)>& weights);
  /// The same of weights of any sign.
  void signed_weights(const Shape& bht, const std::function<Tensor(int64_t sequence)>& weights);

  /// Sequence 0 of a tensor whose first dimension is the sequence.
  void map_of_first(MapKind kind, const Tensor& tensor);
  /// A tensor that is of sequence 0 already.
  void map(MapKind kind, const Tensor& tensor);
  /// What the maps show a choice of.
  void selects(const Selection& selection) { probe_.selects(layer_, selection); }

 private:
  Probe& probe_;
  int64_t layer_;
};

}  // namespace saccade

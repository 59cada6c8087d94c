#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/engine/transfer.h"
#include "kernels/ops/shared/sequences.h"
#include "models/model.h"

namespace saccade {

/// Reports about one layer's heads: numbers averaged over the queries of each sequence, then over sequences, and maps of sequence 0.
class HeadProbe {
 public:
  HeadProbe(Probe& probe, int64_t layer) : probe_(probe), layer_(layer) {}

  bool wants_statistics() const { return probe_.wants_statistics(); }
  bool wants_maps() const { return probe_.wants_maps(); }
  bool plans() const { return probe_.plans(); }

  /// `entropy` (nats) and `entropy_normalized` (H_t / ln(t+1) for t ≥ 1) of entropy [B, H, T].
  void entropy(const Tensor& entropy);
  /// The mean over the queries of value(b, h, t), NaNs left out, and of those the mean over sequences; NaN when nothing is left.
  using Value = std::function<double(int64_t b, int64_t h, int64_t t)>;
  void mean(const std::string& name, const std::string& unit, const Shape& bht, const Value& value);
  /// [sequence][head]; NaNs are left out of the mean.
  void sequences(const std::string& name, const std::string& unit, const std::vector<std::vector<double>>& sequences);
  /// What is the same in all sequences.
  void heads(const std::string& name, const std::string& unit, std::vector<double> heads);
  void heads(const std::string& name, const std::string& unit, const Tensor& heads);

  /// `distance` (tokens back, weighted) and `outside_256` (share of weight further back than the last 256 positions) from
  /// the weights of some sequences, [sequences · H, T, T]. On a GPU they are made of as many sequences at once as take kMostWeightBytes,
  /// and kMostMaps, on a CPU, where a launch costs nothing, of one. Left out for sequences longer than kLongestWeights.
  using Weights = std::function<Tensor(const Sequences&)>;
  void reads(Tape& tape, const Shape& bht, const Weights& weights);
  /// The same for weights of any sign, from |w| of each query made to sum to one; and the entropy of that (`entropy`,
  /// `entropy_normalized`). Queries without any weight are left out.
  void signed_reads(Tape& tape, const Shape& bht, const Weights& weights);
  static constexpr int64_t kLongestWeights = 2048;
  static constexpr int64_t kMostWeightBytes = int64_t{256} << 20, kMostMaps = 65535;  ///< blocks along y of a launch

  /// What is wanted of weights: `entropy` and reads, and the map `weights`.
  void weights(Tape& tape, const Tensor& entropy, const Weights& weights);
  /// The same of weights of any sign.
  void signed_weights(Tape& tape, const Shape& bht, const Weights& weights);

  /// All elements of a tensor, which a GPU is waited for; none where the pass only plans.
  std::vector<double> values(const Tensor& tensor) const;

  /// Sequence 0 of a tensor whose first dimension is the sequence.
  void map_of_first(MapKind kind, const Tensor& tensor);
  /// A tensor that is of sequence 0 already.
  void map(MapKind kind, const Tensor& tensor);
  /// Values that were made on the CPU; not asked for where the pass only plans.
  void map(MapKind kind, const Shape& shape, const std::function<std::vector<float>()>& values);
  /// CPU memory in passing, where the pass plans.
  void needs_memory(int64_t host_bytes) { probe_.needs_memory(host_bytes); }
  /// What was chosen in each sequence, [B, heads, queries] or [B, heads, queries, per query]; −1: nothing.
  void chose(const Tensor& chosen);
  /// What the maps show a choice of.
  void selects(const Selection& selection);

 private:
  /// Elements as they are at this place of the pass. Called when reports are made (Probe::late); once.
  template <class T>
  using Read = std::function<std::vector<T>()>;
  Read<double> read(const Tensor& tensor);
  Read<float> read_map(const Tensor& tensor);
  bool reads_late(const Tensor& tensor);
  /// What `numbers` makes of the weights of all sequences, those of the first one first. Nothing where the pass only plans.
  Read<double> of_weights(const Tape& tape, const Shape& bht, const Weights& weights, const std::function<Tensor(const Tensor&)>& numbers);
  void add_map(MapKind kind, const Shape& shape, Read<float> values);
  void report(std::function<void(Probe&)> made) { saccade::report(probe_, std::move(made)); }

  Probe& probe_;
  int64_t layer_;
};

}  // namespace saccade

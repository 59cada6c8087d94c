#include "models/layers/head_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/read_statistics/read_statistics.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::vector<double> HeadProbe::values(const Tensor& tensor) const { return plans() ? std::vector<double>() : to_doubles(tensor); }

void HeadProbe::entropy(const Tensor& entropy) {
  const std::vector<double> h = values(entropy);
  const Shape& bht = entropy.shape();
  const auto at = [&](int64_t b, int64_t head, int64_t t) { return h[static_cast<size_t>((b * bht[1] + head) * bht[2] + t)]; };
  mean("entropy", "nats", bht, at);
  mean("entropy_normalized", "1", bht,
       [&](int64_t b, int64_t head, int64_t t) { return t == 0 ? kNothing : at(b, head, t) / std::log(static_cast<double>(t + 1)); });
}

void HeadProbe::mean(const std::string& name, const std::string& unit, const Shape& bht, const Value& value) {
  if (plans()) return;
  std::vector<double> means;
  for (int64_t h = 0; h < bht[1]; ++h) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t b = 0; b < bht[0]; ++b)
      for (int64_t t = 0; t < bht[2]; ++t)
        if (const double v = value(b, h, t); !std::isnan(v)) sum += v, ++count;
    means.push_back(count ? sum / static_cast<double>(count) : kNothing);
  }
  heads(name, unit, std::move(means));
}

void HeadProbe::heads(const std::string& name, const std::string& unit, std::vector<double> heads) {
  if (!plans()) probe_.statistic({name, unit, layer_, std::move(heads)});
}

void HeadProbe::reads(Tape& tape, const Shape& bht, const Weights& weights) {
  const int64_t sequences = bht[0], length = bht[2];
  const auto head_count = static_cast<size_t>(bht[1]);
  if (length > kLongestWeights) return;
  std::vector<double> distance(head_count), outside(head_count);
  for (int64_t b = 0; b < sequences; ++b) {
    const std::vector<double> sums = values(read_sums(tape, weights(b), kNear));
    if (plans()) return;
    for (size_t h = 0; h < head_count; ++h) distance[h] += sums[2 * h], outside[h] += sums[2 * h + 1];
  }
  const double queries = static_cast<double>(sequences * length);
  for (size_t h = 0; h < head_count; ++h) distance[h] /= queries, outside[h] /= queries;
  heads("distance", "tokens", std::move(distance));
  heads("outside_256", "1", std::move(outside));
}

void HeadProbe::signed_reads(Tape& tape, const Shape& bht, const Weights& weights) {
  const int64_t length = bht[2];
  if (length > kLongestWeights) return;
  std::vector<std::vector<double>> queries;
  for (int64_t b = 0; b < bht[0]; ++b) {
    queries.push_back(values(query_reads(tape, weights(b), kNear)));
    if (plans()) return;
  }
  enum Column : size_t { kEntropy, kDistance, kOutside };
  const auto at = [&](int64_t b, int64_t h, int64_t t, Column column) {
    return queries[static_cast<size_t>(b)][static_cast<size_t>(3 * (h * length + t)) + column];
  };
  mean("entropy", "nats", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t, kEntropy); });
  mean("entropy_normalized", "1", bht,
       [&](int64_t b, int64_t h, int64_t t) { return t == 0 ? kNothing : at(b, h, t, kEntropy) / std::log(static_cast<double>(t + 1)); });
  mean("distance", "tokens", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t, kDistance); });
  mean("outside_256", "1", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t, kOutside); });
}

void HeadProbe::weights(Tape& tape, const Tensor& entropies, const Weights& weights) {
  if (wants_statistics()) entropy(entropies), reads(tape, entropies.shape(), weights);
  if (wants_maps()) map(MapKind::weights, weights(0));
}

void HeadProbe::signed_weights(Tape& tape, const Shape& bht, const Weights& weights) {
  if (wants_statistics()) signed_reads(tape, bht, weights);
  if (wants_maps()) map(MapKind::weights, weights(0));
}

void HeadProbe::map_of_first(MapKind kind, const Tensor& tensor) {
  Shape rest;
  for (int i = 1; i < tensor.rank(); ++i) rest.push_back(tensor.dim(i));
  map(kind, tensor.slice(0, 1).reshape(rest));
}

void HeadProbe::chose(const Tensor& chosen) {
  if (plans()) return;
  ChosenSources choices{layer_, chosen.dim(1), chosen.dim(2), chosen.rank() > 3 ? chosen.dim(3) : 1, {}};
  for (const double c : to_doubles(chosen.slice(0, 1))) choices.values.push_back(static_cast<int32_t>(c));
  probe_.chose(std::move(choices));
}

void HeadProbe::map(MapKind kind, const Tensor& tensor) {
  map(kind, tensor.shape(), [&] {
    std::vector<float> all(static_cast<size_t>(tensor.size()));
    if (tensor.dtype() == DType::f32) {
      copy_to_host(all.data(), tensor);
      return all;
    }
    const std::vector<double> exact = to_doubles(tensor);
    std::transform(exact.begin(), exact.end(), all.begin(), [](double v) { return static_cast<float>(v); });
    return all;
  });
}

void HeadProbe::map(MapKind kind, const Shape& shape, const std::function<std::vector<float>()>& values) {
  CapturedMap map{kind, layer_, {}, {}};
  for (int i = 0; i < shape.rank(); ++i) map.shape.push_back(shape[i]);
  if (!plans()) map.values = values();
  probe_.map(std::move(map));
}

}  // namespace saccade

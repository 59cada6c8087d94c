#include "models/layers/head_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/engine/parallel.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kHeadsBytes = int64_t{64} << 20;  // weights of heads that are looked at together, as doubles

int64_t heads_at_once(int64_t heads, int64_t length) {
  return std::clamp<int64_t>(kHeadsBytes / (length * length * int64_t{sizeof(double)}), 1, heads);
}

/// Σ over queries of one head's reads, in a fixed order.
struct Reads {
  double distance = 0, outside = 0;
};

Reads reads_of_head(const double* weights, int64_t length) {
  Reads sum;
  for (int64_t t = 0; t < length; ++t)
    for (int64_t j = 0; j <= t; ++j) {
      const double w = weights[t * length + j];
      sum.distance += w * static_cast<double>(t - j);
      if (t - j >= kNear) sum.outside += w;
    }
  return sum;
}

/// What |w| of one query says, normalised to one; NaN when there is none.
struct QueryReads {
  double entropy = kNothing, distance = kNothing, outside = kNothing;
};

QueryReads reads_of_query(const double* weights, int64_t t) {
  double total = 0;
  for (int64_t j = 0; j <= t; ++j) total += std::abs(weights[j]);
  if (!(total > 0)) return {};
  QueryReads sum{0, 0, 0};
  for (int64_t j = 0; j <= t; ++j) {
    const double p = std::abs(weights[j]) / total;
    if (p > 0) sum.entropy -= p * std::log(p);
    sum.distance += p * static_cast<double>(t - j);
    if (t - j >= kNear) sum.outside += p;
  }
  return sum;
}

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

void HeadProbe::reads(const Shape& bht, const std::function<Tensor(int64_t)>& weights) {
  const int64_t sequences = bht[0], head_count = bht[1], length = bht[2];
  if (length > kLongestWeights) return;
  if (plans()) return plan_reads(bht, weights);
  std::vector<Reads> sums(static_cast<size_t>(head_count));
  for (int64_t b = 0; b < sequences; ++b)
    by_heads(weights(b), [&](int64_t first, int64_t count, const std::vector<double>& w) {
      parallel_for(count, [&](int64_t h) {
        const Reads r = reads_of_head(w.data() + h * length * length, length);
        Reads& sum = sums[static_cast<size_t>(first + h)];
        sum.distance += r.distance, sum.outside += r.outside;
      });
    });
  const double queries = static_cast<double>(sequences * length);
  std::vector<double> distance, outside;
  for (const Reads& r : sums) distance.push_back(r.distance / queries), outside.push_back(r.outside / queries);
  heads("distance", "tokens", std::move(distance));
  heads("outside_256", "1", std::move(outside));
}

void HeadProbe::signed_reads(const Shape& bht, const std::function<Tensor(int64_t)>& weights) {
  const int64_t heads = bht[1], length = bht[2];
  if (length > kLongestWeights) return;
  if (plans()) return plan_reads(bht, weights);
  std::vector<QueryReads> queries(static_cast<size_t>(bht.size()));
  for (int64_t b = 0; b < bht[0]; ++b)
    by_heads(weights(b), [&](int64_t first, int64_t count, const std::vector<double>& w) {
      parallel_for(count * length, [&](int64_t row) {
        queries[static_cast<size_t>((b * heads + first) * length + row)] = reads_of_query(w.data() + row * length, row % length);
      });
    });
  const auto at = [&](int64_t b, int64_t h, int64_t t) { return queries[static_cast<size_t>((b * heads + h) * length + t)]; };
  mean("entropy", "nats", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t).entropy; });
  mean("entropy_normalized", "1", bht,
       [&](int64_t b, int64_t h, int64_t t) { return t == 0 ? kNothing : at(b, h, t).entropy / std::log(static_cast<double>(t + 1)); });
  mean("distance", "tokens", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t).distance; });
  mean("outside_256", "1", bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t).outside; });
}

void HeadProbe::weights(const Tensor& entropies, const std::function<Tensor(int64_t)>& weights) {
  if (wants_statistics()) entropy(entropies), reads(entropies.shape(), weights);
  if (wants_maps()) map(MapKind::weights, weights(0));
}

void HeadProbe::signed_weights(const Shape& bht, const std::function<Tensor(int64_t)>& weights) {
  if (wants_statistics()) signed_reads(bht, weights);
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

void HeadProbe::by_heads(const Tensor& weights, const Heads& heads) {
  const int64_t all = weights.dim(0), most = heads_at_once(all, weights.dim(1));
  for (int64_t first = 0; first < all; first += most) {
    const int64_t count = std::min(most, all - first);
    heads(first, count, to_doubles(weights.slice(first, first + count)));
  }
}

int64_t HeadProbe::looked_at_bytes(int64_t heads, int64_t length) {
  return heads_at_once(heads, length) * length * length * int64_t{sizeof(double) + sizeof(float)};
}

void HeadProbe::plan_reads(const Shape& bht, const std::function<Tensor(int64_t)>& weights) {
  weights(0);
  needs_memory(looked_at_bytes(bht[1], bht[2]));
}

}  // namespace saccade

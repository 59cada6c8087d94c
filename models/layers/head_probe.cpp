#include "models/layers/head_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/read_statistics/read_statistics.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

HeadStatistic mean_of(int64_t layer, const std::string& name, const std::string& unit, const Shape& bht, const HeadProbe::Value& value) {
  HeadStatistic means{name, unit, layer, {}};
  for (int64_t h = 0; h < bht[1]; ++h) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t b = 0; b < bht[0]; ++b)
      for (int64_t t = 0; t < bht[2]; ++t)
        if (const double v = value(b, h, t); !std::isnan(v)) sum += v, ++count;
    means.heads.push_back(count ? sum / static_cast<double>(count) : kNothing);
  }
  return means;
}

/// Of the entropy of query t, which reads from t + 1 tokens.
double normalized(double entropy, int64_t t) { return t == 0 ? kNothing : entropy / std::log(static_cast<double>(t + 1)); }

template <class T>
std::function<std::vector<T>()> there_already(std::vector<T> values) {
  return [values = std::move(values)]() mutable { return std::move(values); };
}

}  // namespace

bool HeadProbe::reads_late(const Tensor& tensor) {
  const LateReports* late = probe_.late();
  return late && tensor.device().is_cuda() && late->has_room(tensor);
}

HeadProbe::Read<double> HeadProbe::read(const Tensor& tensor) {
  if (!reads_late(tensor)) return there_already(values(tensor));
  return [copy = probe_.late()->copy(tensor)] { return to_doubles(copy); };
}

HeadProbe::Read<float> HeadProbe::read_map(const Tensor& tensor) {
  if (tensor.dtype() == DType::f32 && reads_late(tensor))
    return [copy = probe_.late()->copy(tensor)] { return std::vector<float>(copy.data<float>(), copy.data<float>() + copy.size()); };
  if (tensor.dtype() == DType::f32) {
    std::vector<float> all(static_cast<size_t>(tensor.size()));
    copy_to_host(all.data(), tensor);
    return there_already(std::move(all));
  }
  return [exact = read(tensor)] {
    const std::vector<double> values = exact();
    std::vector<float> all(values.size());
    std::transform(values.begin(), values.end(), all.begin(), [](double v) { return static_cast<float>(v); });
    return all;
  };
}

std::vector<double> HeadProbe::values(const Tensor& tensor) const { return plans() ? std::vector<double>() : to_doubles(tensor); }

void HeadProbe::entropy(const Tensor& entropy) {
  if (plans()) return;
  report([layer = layer_, bht = entropy.shape(), get = read(entropy)](Probe& probe) {
    const std::vector<double> h = get();
    const auto at = [&](int64_t b, int64_t head, int64_t t) { return h[static_cast<size_t>((b * bht[1] + head) * bht[2] + t)]; };
    probe.statistic(mean_of(layer, "entropy", "nats", bht, at));
    probe.statistic(
        mean_of(layer, "entropy_normalized", "1", bht, [&](int64_t b, int64_t head, int64_t t) { return normalized(at(b, head, t), t); }));
  });
}

void HeadProbe::mean(const std::string& name, const std::string& unit, const Shape& bht, const Value& value) {
  if (plans()) return;
  report([mean = mean_of(layer_, name, unit, bht, value)](Probe& probe) { probe.statistic(mean); });
}

void HeadProbe::heads(const std::string& name, const std::string& unit, std::vector<double> heads) {
  if (plans()) return;
  report([statistic = HeadStatistic{name, unit, layer_, std::move(heads)}](Probe& probe) { probe.statistic(statistic); });
}

void HeadProbe::heads(const std::string& name, const std::string& unit, const Tensor& heads) {
  if (plans()) return;
  report([name, unit, layer = layer_, get = read(heads)](Probe& probe) { probe.statistic({name, unit, layer, get()}); });
}

void HeadProbe::reads(Tape& tape, const Shape& bht, const Weights& weights) {
  const int64_t sequences = bht[0], length = bht[2];
  if (length > kLongestWeights) return;
  std::vector<Read<double>> sums;
  for (int64_t b = 0; b < sequences; ++b) {
    sums.push_back(read(read_sums(tape, weights(b), kNear)));
    if (plans()) return;
  }
  report([layer = layer_, head_count = static_cast<size_t>(bht[1]), queries = static_cast<double>(sequences * length),
          sums = std::move(sums)](Probe& probe) {
    std::vector<double> distance(head_count), outside(head_count);
    for (const Read<double>& get : sums) {
      const std::vector<double> of_sequence = get();
      for (size_t h = 0; h < head_count; ++h) distance[h] += of_sequence[2 * h], outside[h] += of_sequence[2 * h + 1];
    }
    for (size_t h = 0; h < head_count; ++h) distance[h] /= queries, outside[h] /= queries;
    probe.statistic({"distance", "tokens", layer, std::move(distance)});
    probe.statistic({"outside_256", "1", layer, std::move(outside)});
  });
}

void HeadProbe::signed_reads(Tape& tape, const Shape& bht, const Weights& weights) {
  const int64_t length = bht[2];
  if (length > kLongestWeights) return;
  std::vector<Read<double>> reads;
  for (int64_t b = 0; b < bht[0]; ++b) {
    reads.push_back(read(query_reads(tape, weights(b), kNear)));
    if (plans()) return;
  }
  report([layer = layer_, bht, reads = std::move(reads)](Probe& probe) {
    std::vector<std::vector<double>> queries;
    for (const Read<double>& get : reads) queries.push_back(get());
    enum Column : size_t { kEntropy, kDistance, kOutside };
    const auto at = [&](int64_t b, int64_t h, int64_t t, Column column) {
      return queries[static_cast<size_t>(b)][static_cast<size_t>(3 * (h * bht[2] + t)) + column];
    };
    const auto mean = [&](const char* name, const char* unit, Column column) {
      probe.statistic(mean_of(layer, name, unit, bht, [&](int64_t b, int64_t h, int64_t t) { return at(b, h, t, column); }));
    };
    mean("entropy", "nats", kEntropy);
    probe.statistic(mean_of(layer, "entropy_normalized", "1", bht,
                            [&](int64_t b, int64_t h, int64_t t) { return normalized(at(b, h, t, kEntropy), t); }));
    mean("distance", "tokens", kDistance);
    mean("outside_256", "1", kOutside);
  });
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

void HeadProbe::selects(const Selection& selection) {
  report([layer = layer_, selection](Probe& probe) { probe.selects(layer, selection); });
}

void HeadProbe::chose(const Tensor& chosen) {
  if (plans()) return;
  const ChosenSources empty{layer_, chosen.dim(1), chosen.dim(2), chosen.rank() > 3 ? chosen.dim(3) : 1, {}};
  report([empty, get = read(chosen.slice(0, 1))](Probe& probe) {
    ChosenSources choices = empty;
    for (const double c : get()) choices.values.push_back(static_cast<int32_t>(c));
    probe.chose(std::move(choices));
  });
}

void HeadProbe::map(MapKind kind, const Tensor& tensor) { add_map(kind, tensor.shape(), plans() ? Read<float>() : read_map(tensor)); }

void HeadProbe::map(MapKind kind, const Shape& shape, const std::function<std::vector<float>()>& values) {
  add_map(kind, shape, plans() ? Read<float>() : there_already(values()));
}

void HeadProbe::add_map(MapKind kind, const Shape& shape, Read<float> values) {
  CapturedMap map{kind, layer_, {}, {}};
  for (int i = 0; i < shape.rank(); ++i) map.shape.push_back(shape[i]);
  if (plans()) return probe_.map(std::move(map));
  report([map = std::move(map), get = std::move(values)](Probe& probe) mutable {
    map.values = get();
    probe.map(std::move(map));
  });
}

}  // namespace saccade

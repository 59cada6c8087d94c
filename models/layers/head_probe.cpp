#include "models/layers/head_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/engine/parallel.h"
#include "kernels/ops/read_statistics/read_statistics.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

HeadStatistic mean_of(int64_t layer, const std::string& name, const std::string& unit, const Shape& bht, const HeadProbe::Value& value) {
  std::vector<std::vector<double>> sequences(static_cast<size_t>(bht[0]), std::vector<double>(static_cast<size_t>(bht[1])));
  parallel_for(bht[0] * bht[1], [&](int64_t i) {
    const int64_t b = i / bht[1], h = i % bht[1];
    double sum = 0;
    int64_t count = 0;
    for (int64_t t = 0; t < bht[2]; ++t)
      if (const double v = value(b, h, t); !std::isnan(v)) sum += v, ++count;
    sequences[static_cast<size_t>(b)][static_cast<size_t>(h)] = count ? sum / static_cast<double>(count) : kNothing;
  });
  return mean_of_sequences(name, unit, layer, sequences);
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

void HeadProbe::sequences(const std::string& name, const std::string& unit, const std::vector<std::vector<double>>& sequences) {
  if (plans()) return;
  report([mean = mean_of_sequences(name, unit, layer_, sequences)](Probe& probe) { probe.statistic(mean); });
}

void HeadProbe::heads(const std::string& name, const std::string& unit, std::vector<double> heads) {
  if (plans()) return;
  report([statistic = HeadStatistic{name, unit, layer_, std::move(heads)}](Probe& probe) { probe.statistic(statistic); });
}

void HeadProbe::heads(const std::string& name, const std::string& unit, const Tensor& heads) {
  if (plans()) return;
  report([name, unit, layer = layer_, get = read(heads)](Probe& probe) { probe.statistic({name, unit, layer, get()}); });
}

HeadProbe::Read<double> HeadProbe::of_weights(const Tape& tape, const Shape& bht, const Weights& weights,
                                              const std::function<Tensor(const Tensor&)>& numbers) {
  int64_t at_once = 1;
  if (tape.device().engine == Engine::cuda) {
    const int64_t longest = std::max(bht[2], probe_.longest());
    at_once = std::clamp<int64_t>(std::min(kMostWeightBytes / (4 * longest * longest), kMostMaps) / bht[1], 1, bht[0]);
  }
  std::vector<Read<double>> pieces;
  for (int64_t b = 0; b < bht[0]; b += at_once) {
    pieces.push_back(read(numbers(weights({b, std::min(at_once, bht[0] - b)}))));
    if (plans()) return {};
  }
  return [pieces = std::move(pieces)] {
    std::vector<double> all;
    for (const Read<double>& get : pieces) {
      const std::vector<double> piece = get();
      all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
  };
}

void HeadProbe::reads(Tape& tape, const Shape& bht, const Weights& weights) {
  if (bht[2] > kLongestWeights) return;
  const Read<double> sums = of_weights(tape, bht, weights, [&](const Tensor& w) { return read_sums(tape, w, kNear); });
  if (plans()) return;
  report([layer = layer_, bht, sums](Probe& probe) {
    const std::vector<double> all = sums();
    const auto mean = [&](const char* name, const char* unit, int64_t column) {
      std::vector<std::vector<double>> sequences(static_cast<size_t>(bht[0]));
      for (int64_t i = 0; i < bht[0] * bht[1]; ++i)
        sequences[static_cast<size_t>(i / bht[1])].push_back(all[static_cast<size_t>(2 * i + column)] / static_cast<double>(bht[2]));
      probe.statistic(mean_of_sequences(name, unit, layer, sequences));
    };
    mean("distance", "tokens", 0);
    mean("outside_256", "1", 1);
  });
}

void HeadProbe::signed_reads(Tape& tape, const Shape& bht, const Weights& weights) {
  if (bht[2] > kLongestWeights) return;
  const Read<double> reads = of_weights(tape, bht, weights, [&](const Tensor& w) { return query_reads(tape, w, kNear); });
  if (plans()) return;
  report([layer = layer_, bht, reads](Probe& probe) {
    const std::vector<double> queries = reads();
    enum Column : size_t { kEntropy, kDistance, kOutside };
    const auto at = [&](int64_t b, int64_t h, int64_t t, Column column) {
      return queries[static_cast<size_t>(3 * ((b * bht[1] + h) * bht[2] + t)) + column];
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
  report([empty, sequences = chosen.dim(0), get = read(chosen)](Probe& probe) {
    const std::vector<double> all = get();
    const int64_t size = empty.heads * empty.queries * empty.per_query;
    for (int64_t b = 0; b < sequences; ++b) {
      ChosenSources choices = empty;
      for (int64_t i = b * size; i < (b + 1) * size; ++i) choices.values.push_back(static_cast<int32_t>(all[static_cast<size_t>(i)]));
      probe.chose(b, std::move(choices));
    }
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

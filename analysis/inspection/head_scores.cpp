#include "analysis/inspection/head_scores.h"

#include <algorithm>
#include <cmath>

#include "analysis/probes/capture_maps.h"
#include "kernels/engine/parallel.h"

namespace saccade {
namespace {

struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(double value) { sum += value, ++count; }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : std::nan(""); }
};

struct Means {
  Mean entropy, distance, induction;
};

void add_query(const Capture& capture, const float* weights, size_t t, Means& means) {
  double total = 0, entropy = 0, distance = 0, copied = 0;
  for (size_t j = 0; j <= t; ++j) total += static_cast<double>(std::abs(weights[j]));
  if (!(total > 0)) return;
  bool repeats = false;
  for (size_t j = 0; j <= t; ++j) {
    const double p = static_cast<double>(std::abs(weights[j])) / total;
    if (p > 0) entropy -= p * std::log(p);
    distance += p * static_cast<double>(t - j);
    if (j == 0 || j == t || capture.tokens[j - 1] != capture.tokens[t]) continue;
    repeats = true;
    copied += p;
  }
  if (t > 0) means.entropy.add(entropy / std::log(static_cast<double>(t + 1)));
  means.distance.add(distance);
  if (repeats) means.induction.add(copied);
}

}  // namespace

std::vector<HeadScores> head_scores(const Capture& capture, const std::function<bool()>& cancelled) {
  std::vector<HeadScores> all;
  const int64_t length = static_cast<int64_t>(capture.tokens.size());
  for (const CapturedMap& map : capture.maps) {
    if (map.kind != MapKind::weights || map.shape.size() != 3 || map.shape[1] != length || map.shape[2] != length) continue;
    if (!capture.stored && static_cast<int64_t>(map.values.size()) != map.shape[0] * length * length) continue;
    std::vector<Means> means(static_cast<size_t>(map.shape[0]));
    parallel_for(map.shape[0], [&](int64_t h) {
      constexpr int64_t kRows = 64;
      for (int64_t first = 0; first < length && !(cancelled && cancelled()); first += kRows) {
        const std::vector<float> rows = rows_of(capture, map, h, first, std::min(kRows, length - first));
        for (int64_t t = first; t < std::min(first + kRows, length); ++t)
          add_query(capture, rows.data() + (t - first) * length, static_cast<size_t>(t), means[static_cast<size_t>(h)]);
      }
    });
    HeadScores scores{map.layer, {}, {}, {}};
    for (const Means& m : means) {
      scores.entropy.push_back(m.entropy.value());
      scores.distance.push_back(m.distance.value());
      scores.induction.push_back(m.induction.value());
    }
    all.push_back(std::move(scores));
  }
  std::sort(all.begin(), all.end(), [](const HeadScores& a, const HeadScores& b) { return a.layer < b.layer; });
  return all;
}

}  // namespace saccade

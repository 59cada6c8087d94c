#include "analysis/figures/reads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/probes/capture_maps.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// Smallest distance within which a share of the mass lies.
double distance_quantile(const std::vector<double>& share, double quantile) {
  double sum = 0;
  const auto query = static_cast<int64_t>(share.size()) - 1;
  for (int64_t distance = 0; distance <= query; ++distance) {
    sum += share[static_cast<size_t>(query - distance)];
    if (sum >= quantile - 1e-12) return static_cast<double>(distance);
  }
  return static_cast<double>(query);
}

void summarize(Reads& reads) {
  std::vector<double> share;
  double total = 0;
  for (const double w : reads.weights) total += std::abs(w);
  if (!(total > 0)) {
    reads.entropy = reads.entropy_normalized = reads.outside_256 = reads.median_distance = reads.distance_90 = kUndefined;
    return;
  }
  for (const double w : reads.weights) share.push_back(std::abs(w) / total);
  for (const double p : share)
    if (p > 0) reads.entropy -= p * std::log(p);
  const auto positions = static_cast<int64_t>(share.size());
  reads.entropy_normalized = positions > 1 ? reads.entropy / std::log(static_cast<double>(positions)) : kUndefined;
  for (int64_t j = 0; j < positions - kNear; ++j) reads.outside_256 += share[static_cast<size_t>(j)];
  reads.median_distance = distance_quantile(share, 0.5);
  reads.distance_90 = distance_quantile(share, 0.9);
}

double per_query_value(const Capture& capture, MapKind kind, int64_t layer, int64_t head, int64_t query) {
  if (!find_map(capture, kind, layer)) return kUndefined;
  const CapturedMap& map = require_map(capture, kind, layer, 2);
  return head < map.shape[0] && query < map.shape[1] ? map.values[static_cast<size_t>(head * map.shape[1] + query)] : kUndefined;
}

void take_candidate_scores(Reads& reads, const float* scores, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    reads.candidate_scores.push_back(std::isfinite(scores[i]) ? static_cast<double>(scores[i]) : kUndefined);
}

void take_chunks(Reads& reads, const Capture& capture, const CapturedMap& score, int64_t head, int64_t query) {
  const int64_t chunks = score.shape[2];
  take_candidate_scores(reads, rows_of(capture, score, head, query, 1).data(), chunks);
  reads.chosen_candidates = selected_at(capture, score.layer, head, query);
}

void take_splits(Reads& reads, const Capture& capture, int64_t query) {
  const CapturedMap& maxsim = require_map(capture, MapKind::maxsim, -1, 2);
  const int64_t splits = maxsim.shape[1], own = std::min(query / std::max<int64_t>(1, reads.candidate_size), maxsim.shape[0] - 1);
  take_candidate_scores(reads, maxsim.values.data() + own * splits, splits);
  for (int64_t p = own; p < splits; ++p) reads.candidate_scores[static_cast<size_t>(p)] = kUndefined;
  reads.chosen_candidates = chosen_splits(capture, own);
}

void take_selection(Reads& reads, const Capture& capture, int64_t layer, int64_t head, int64_t query) {
  reads.margin = per_query_value(capture, MapKind::margin, layer, head, query);
  reads.captured_mass = per_query_value(capture, MapKind::captured_mass, layer, head, query);
  reads.candidate_size = candidate_size(capture, layer);
  if (reads.candidate_size == 0) {
    reads.chosen_positions = selected_at(capture, layer, head, query);
    if (find_map(capture, MapKind::soft_weights, layer) && !reads.chosen_positions.empty()) {
      const CapturedMap& soft = require_map(capture, MapKind::soft_weights, layer, 3);
      const std::vector<float> row = rows_of(capture, soft, head, query, 1);
      reads.margin = element_margin({row.begin(), row.begin() + query + 1}, reads.chosen_positions);
    }
    return;
  }
  if (find_selection(capture, layer)->unit == Selection::Unit::chunk)
    take_chunks(reads, capture, require_map(capture, MapKind::score, layer, 3), head, query);
  else
    take_splits(reads, capture, query);
  for (const int64_t candidate : reads.chosen_candidates)
    for (int64_t j = candidate * reads.candidate_size; j < std::min((candidate + 1) * reads.candidate_size, query + 1); ++j)
      reads.chosen_positions.push_back(j);
  std::sort(reads.chosen_positions.begin(), reads.chosen_positions.end());
  if (std::isnan(reads.margin)) reads.margin = selection_margin(reads.candidate_scores, reads.chosen_candidates);
}

}  // namespace

double selection_margin(const std::vector<double>& scores, const std::vector<int64_t>& chosen) {
  double least = std::numeric_limits<double>::infinity(), next = -least;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) continue;
    if (std::find(chosen.begin(), chosen.end(), static_cast<int64_t>(i)) != chosen.end())
      least = std::min(least, scores[i]);
    else
      next = std::max(next, scores[i]);
  }
  return std::isfinite(least) && std::isfinite(next) ? least - next : kUndefined;
}

double element_margin(std::vector<double> soft_weights, const std::vector<int64_t>& chosen) {
  for (double& w : soft_weights) w = std::log(w);  // of a weight that float32 cannot hold −inf, which is no candidate
  return selection_margin(soft_weights, chosen);
}

Reads reads_of(const Capture& capture, int64_t layer, int64_t head, int64_t query) {
  const CapturedMap& weights = require_map(capture, MapKind::weights, layer, 3);
  require_head(weights, head);
  const int64_t queries = weights.shape[1], sources = weights.shape[2];
  if (query < 0 || query >= queries)
    throw UsageError("query " + std::to_string(query) + " is out of range: the sample has positions 0 to " + std::to_string(queries - 1));
  Reads reads;
  const std::vector<float> row = rows_of(capture, weights, head, query, 1);
  reads.weights.assign(row.begin(), row.begin() + std::min(query + 1, sources));
  summarize(reads);
  take_selection(reads, capture, layer, head, query);
  return reads;
}

}  // namespace saccade

#include "analysis/figures/margins.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/figures/reads.h"
#include "analysis/probes/capture_maps.h"

namespace saccade {
namespace {

constexpr float kUndefined = std::numeric_limits<float>::quiet_NaN();

std::vector<float> split_margins(const Capture& capture) {
  const CapturedMap& maxsim = require_map(capture, MapKind::maxsim, -1, 2);
  const int64_t splits = maxsim.shape[1], size = std::max<int64_t>(1, find_selection(capture, -1)->tokens);
  std::vector<float> margins(capture.tokens.size(), kUndefined);
  for (int64_t i = 0; i < maxsim.shape[0]; ++i) {
    const float* row = maxsim.values.data() + i * splits;
    const auto margin = static_cast<float>(selection_margin({row, row + i}, chosen_splits(capture, i)));
    for (int64_t t = i * size; t < std::min<int64_t>((i + 1) * size, static_cast<int64_t>(margins.size())); ++t)
      margins[static_cast<size_t>(t)] = margin;
  }
  return margins;
}

std::vector<float> chunk_margins(const Capture& capture, int64_t layer, int64_t head) {
  const CapturedMap& map = require_map(capture, MapKind::margin, layer, 2);
  require_head(map, head);
  const float* row = map.values.data() + head * map.shape[1];
  return {row, row + map.shape[1]};
}

std::vector<float> element_margins(const Capture& capture, int64_t layer, int64_t head) {
  const CapturedMap& soft = require_map(capture, MapKind::soft_weights, layer, 3);
  require_head(soft, head);
  const int64_t queries = soft.shape[1];
  std::vector<float> margins(static_cast<size_t>(queries), kUndefined);
  constexpr int64_t kRows = 64;
  for (int64_t first = 0; first < queries; first += kRows) {
    const std::vector<float> rows = rows_of(capture, soft, head, first, std::min(kRows, queries - first));
    for (int64_t t = first; t < std::min(first + kRows, queries); ++t) {
      const float* row = rows.data() + (t - first) * soft.shape[2];
      margins[static_cast<size_t>(t)] = static_cast<float>(element_margin({row, row + t + 1}, selected_at(capture, layer, head, t)));
    }
  }
  return margins;
}

}  // namespace

bool has_margins(const Capture& capture, int64_t layer) {
  const Selection* selection = find_selection(capture, layer);
  if (!selection) return false;
  switch (selection->unit) {
    case Selection::Unit::split: return find_map(capture, MapKind::maxsim, layer);
    case Selection::Unit::chunk: return find_map(capture, MapKind::margin, layer);
    case Selection::Unit::element: return find_map(capture, MapKind::soft_weights, layer);
  }
  return false;
}

std::vector<float> choice_margins(const Capture& capture, int64_t layer, int64_t head) {
  if (!has_margins(capture, layer)) return {};
  switch (find_selection(capture, layer)->unit) {
    case Selection::Unit::split: return split_margins(capture);
    case Selection::Unit::chunk: return chunk_margins(capture, layer, head);
    case Selection::Unit::element: return element_margins(capture, layer, head);
  }
  return {};
}

Figure with_margins(Figure figure, const Capture& capture, int64_t layer, int64_t head) {
  const std::vector<float> margins = choice_margins(capture, layer, head);
  const Selection* selection = find_selection(capture, layer);
  if (margins.empty() || !figure.map || figure.map->rows == 0) return figure;
  HeatMap& map = *figure.map;
  map.strip.clear();
  const int64_t rows = map.cells[0] > 0 ? map.cells[0] : map.rows;
  if (rows == static_cast<int64_t>(margins.size())) {
    map.strip = margins;
  } else if (selection->unit == Selection::Unit::split) {  // a row a split
    for (int64_t i = 0; i < rows; ++i) map.strip.push_back(margins.at(static_cast<size_t>(i * selection->tokens)));
  }
  map.strip_title = "margin";
  return figure;
}

}  // namespace saccade

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/figures/figure.h"
#include "analysis/probes/capture_maps.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// From the smallest to the largest finite value; around zero when there are values on both sides.
void fit_range(HeatMap& map, bool from_zero) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (float& v : map.values) {
    if (!std::isfinite(v)) v = std::numeric_limits<float>::quiet_NaN();
    if (std::isnan(v)) continue;
    low = std::min(low, static_cast<double>(v));
    high = std::max(high, static_cast<double>(v));
  }
  set_range(map, {low, high}, from_zero);
}

Figure map_figure(const std::string& id, const std::string& title, const std::string& x, const std::string& y, HeatMap map) {
  Figure figure{.id = id, .title = title, .x = {x, false, false, {}}, .y = {y, false, false, {}}};
  figure.map = std::move(map);
  figure.width_mm = 120;
  figure.height_mm = 110;
  return figure;
}

std::string place(const Capture& capture, int64_t layer, int64_t head) {
  return layer_words(capture, layer) + ", head " + std::to_string(head);
}
std::string place_id(int64_t layer, int64_t head) { return "-layer" + std::to_string(layer) + "-head" + std::to_string(head); }

Figure weights_figure(const Capture& capture, MapKind kind, int64_t layer, int64_t head) {
  const CapturedMap& weights = require_map(capture, kind, layer, 3);
  require_head(weights, head);
  HeatMap map{.rows = weights.shape[1], .columns = weights.shape[2], .value_title = "weight"};
  const std::string title = kind == MapKind::weights ? "Attention (or read) weights, " : "Soft weights behind the selection, ";
  return map_figure(to_string(kind) + place_id(layer, head), title + place(capture, layer, head), "source position", "query position",
                    std::move(map));
}

Figure score_figure(const Capture& capture, int64_t layer, int64_t head) {
  const CapturedMap& scores = require_map(capture, MapKind::score, layer, 3);
  require_head(scores, head);
  HeatMap map{.rows = scores.shape[1], .columns = scores.shape[2], .value_title = "chunk score"};
  for (int64_t t = 0; t < map.rows; ++t)
    for (const int64_t chunk : selected_at(capture, layer, head, t))
      if (chunk < map.columns) map.marked.push_back({t, chunk});
  return map_figure(to_string(MapKind::score) + place_id(layer, head), "Chunk selection, " + place(capture, layer, head), "chunk",
                    "query position", std::move(map));
}

Figure maxsim_figure(const Capture& capture) {
  const CapturedMap& scores = require_map(capture, MapKind::maxsim, -1, 2);
  HeatMap map{.rows = scores.shape[0], .columns = scores.shape[1], .values = scores.values, .value_title = "MaxSim"};
  for (int64_t i = 0; i < map.rows; ++i) {
    for (int64_t p = i; p < map.columns; ++p)
      map.values[static_cast<size_t>(i * map.columns + p)] = std::numeric_limits<float>::quiet_NaN();
    for (const int64_t split : chosen_splits(capture, i)) map.marked.push_back({i, split});
  }
  fit_range(map, false);
  return map_figure(to_string(MapKind::maxsim), "Split similarity, chosen splits marked", "earlier split", "split that reads",
                    std::move(map));
}

Figure per_query_figure(const Capture& capture, MapKind kind, int64_t layer) {
  const CapturedMap& values = require_map(capture, kind, layer, 2);
  HeatMap map{.rows = values.shape[0],
              .columns = values.shape[1],
              .values = values.values,
              .value_title = kind == MapKind::margin ? "margin" : "captured mass"};
  fit_range(map, false);
  if (kind == MapKind::captured_mass) map.range = {0, 1};
  return map_figure(std::string(to_string(kind)) + "-layer" + std::to_string(layer), map.value_title + ", " + layer_words(capture, layer),
                    "query position", "head", std::move(map));
}

/// Recipes of maps by layer and head, whose values are read by rows: everything but those.
Figure without_values(const Capture& capture, MapKind kind, int64_t layer, int64_t head) {
  Figure figure = kind == MapKind::score ? score_figure(capture, layer, head) : weights_figure(capture, kind, layer, head);
  figure.provenance = {"capture at step " + std::to_string(capture.at.step) + ", " + capture.domain + ", sample " +
                       std::to_string(capture.sample)};
  return figure;
}

}  // namespace

void set_range(HeatMap& map, std::array<double, 2> range, bool from_zero) {
  auto [low, high] = range;
  if (low > high) low = 0, high = 1;
  if (from_zero && low < 0) {
    map.diverging = true;
    high = std::max(-low, high);
    low = -high;
  } else if (from_zero) {
    low = 0;
  }
  if (low == high) high = low + 1;
  map.range = {low, high};
}

std::string scale_title(const HeatMap& map) {
  if (map.block == std::array<int64_t, 2>{1, 1}) return map.value_title;
  return map.value_title + ", greatest of " + std::to_string(map.block[0]) + " × " + std::to_string(map.block[1]);
}

bool is_read_by_rows(MapKind kind) { return kind == MapKind::weights || kind == MapKind::soft_weights || kind == MapKind::score; }

std::vector<float> capture_rows(const Capture& capture, const MapPlace& place, int64_t first, int64_t count) {
  const CapturedMap& map = require_map(capture, place.kind, place.layer, 3);
  require_head(map, place.head);
  std::vector<float> values = rows_of(capture, map, place.head, first, count);
  if (place.kind != MapKind::score)  // what lies in the future was not read with weight zero: it could not be read
    for (int64_t t = 0; t < count; ++t)
      for (int64_t j = first + t + 1; j < map.shape[2]; ++j)
        if (float& value = values[static_cast<size_t>(t * map.shape[2] + j)]; value == 0) value = std::numeric_limits<float>::quiet_NaN();
  return values;
}

Figure empty_capture_figure(const Capture& capture, const MapPlace& place) {
  return without_values(capture, place.kind, place.layer, place.head);
}

Figure head_figure(const StatisticsRecord& record, const std::string& statistic, const std::vector<std::string>& layer_mixers) {
  HeatMap map;
  std::string unit;
  for (const HeadStatistic& s : record.statistics)
    if (s.name == statistic) {
      map.rows = std::max(map.rows, s.layer + 1);
      map.columns = std::max(map.columns, static_cast<int64_t>(s.heads.size()));
      unit = s.unit;
    }
  if (map.rows > 0) map.rows = std::max(map.rows, static_cast<int64_t>(layer_mixers.size()));
  map.row_names = layer_mixers;
  if (map.rows == 0) throw UsageError("no statistic \"" + statistic + "\" was recorded at step " + std::to_string(record.at.step));
  map.values.assign(static_cast<size_t>(map.rows * map.columns), std::numeric_limits<float>::quiet_NaN());
  for (const HeadStatistic& s : record.statistics)
    if (s.name == statistic && s.layer >= 0)
      for (size_t h = 0; h < s.heads.size(); ++h)
        map.values[static_cast<size_t>(s.layer * map.columns) + h] = static_cast<float>(s.heads[h]);
  std::string words = statistic;
  std::replace(words.begin(), words.end(), '_', ' ');
  map.value_title = words + (unit.empty() || unit == "1" ? "" : " (" + unit + ")");
  fit_range(map, true);  // from zero, so that a colour means the same at the next step as far as it can
  if (statistic == "entropy_normalized" || statistic == "captured_mass" || statistic == "outside_256") map.range = {0, 1};
  return map_figure(statistic + "-heads", words + " by layer and head, step " + std::to_string(record.at.step), "head", "layer",
                    std::move(map));
}

Figure capture_figure(const Capture& capture, MapKind kind, int64_t layer, int64_t head) {
  const auto draw = [&] {
    switch (kind) {
      case MapKind::weights:
      case MapKind::soft_weights:
      case MapKind::score: {
        Figure figure = without_values(capture, kind, layer, head);
        figure.map->values = capture_rows(capture, {kind, layer, head}, 0, figure.map->rows);
        fit_range(*figure.map, kind != MapKind::score);
        return figure;
      }
      case MapKind::maxsim: return maxsim_figure(capture);
      case MapKind::captured_mass:
      case MapKind::margin: return per_query_figure(capture, kind, layer);
      case MapKind::selected:
      case MapKind::chosen:
      case MapKind::split_weights: break;
    }
    throw UsageError(std::string("the map \"") + to_string(kind) +
                     "\" has no figure; expected weights, soft_weights, score, maxsim, captured_mass or margin");
  };
  Figure figure = draw();
  figure.provenance = {"capture at step " + std::to_string(capture.at.step) + ", " + capture.domain + ", sample " +
                       std::to_string(capture.sample)};
  return figure;
}

}  // namespace saccade

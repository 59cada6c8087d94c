#include "analysis/inspection/large_map.h"

#include "analysis/inspection/run_differences.h"
#include "analysis/probes/capture_maps.h"

namespace saccade {
namespace {

/// The first is taken from the second.
std::array<HeadOf, 2> heads_of(const MapSource& source) {
  return {HeadOf{*source.minus, source.minus_place.layer, source.minus_place.head},
          HeadOf{*source.capture, source.place.layer, source.place.head}};
}

Figure empty_figure(const MapSource& source) {
  if (!source.minus) return empty_capture_figure(*source.capture, source.place);
  const auto [from, of] = heads_of(source);
  return empty_difference_figure(from, of);
}

}  // namespace

int64_t cells_of(const Capture& capture, const MapPlace& place) {
  const CapturedMap* map = find_map(capture, place.kind, place.layer);
  if (!map) return 0;
  return map->shape.size() == 3 ? map->shape[1] * map->shape[2] : static_cast<int64_t>(map->values.size());
}

Figure whole_figure(const MapSource& source) {
  if (!source.minus) return capture_figure(*source.capture, source.place.kind, source.place.layer, source.place.head);
  const auto [from, of] = heads_of(source);
  return difference_figure(from, of);
}

std::vector<float> rows_of(const MapSource& source, int64_t first, int64_t count) {
  if (!source.minus) return capture_rows(*source.capture, source.place, first, count);
  const auto [from, of] = heads_of(source);
  return difference_rows(from, of, first, count);
}

std::unique_ptr<MapPyramid> pyramid_of(const MapSource& source, const std::function<bool()>& cancelled) {
  const Figure figure = empty_figure(source);
  return std::make_unique<MapPyramid>(
      MapRows{figure.map->rows, figure.map->columns, [source](int64_t first, int64_t count) { return rows_of(source, first, count); }},
      cancelled);
}

Figure pyramid_figure(const MapSource& source, MapPyramid& pyramid, int64_t most) {
  Figure figure = empty_figure(source);
  HeatMap map = pyramid.whole(most);
  map.value_title = figure.map->value_title;
  map.marked = std::move(figure.map->marked);
  set_range(map, pyramid.range(), source.place.kind != MapKind::score);
  if (source.minus) set_difference_range(map, pyramid.range());
  figure.map = std::move(map);
  return figure;
}

Figure part_figure(const Figure& whole, HeatMap part) {
  Figure figure{.id = whole.id, .title = whole.title, .x = whole.x, .y = whole.y};
  const HeatMap& all = *whole.map;
  part.range = all.range, part.logarithmic = all.logarithmic, part.diverging = all.diverging, part.colours = all.colours;
  part.top_down = all.top_down;
  part.value_title = all.value_title;
  figure.map = std::move(part);
  return figure;
}

}  // namespace saccade

#include "analysis/inspection/large_map.h"

#include "analysis/probes/capture_maps.h"

namespace saccade {
int64_t cells_of(const Capture& capture, const MapPlace& place) {
  const CapturedMap* map = find_map(capture, place.kind, place.layer);
  if (!map) return 0;
  return map->shape.size() == 3 ? map->shape[1] * map->shape[2] : static_cast<int64_t>(map->values.size());
}

std::unique_ptr<MapPyramid> pyramid_of(std::shared_ptr<const Capture> capture, const MapPlace& place,
                                       const std::function<bool()>& cancelled) {
  const Figure figure = empty_capture_figure(*capture, place);
  return std::make_unique<MapPyramid>(
      MapRows{figure.map->rows, figure.map->columns,
              [capture = std::move(capture), place](int64_t first, int64_t count) { return capture_rows(*capture, place, first, count); }},
      cancelled);
}

Figure pyramid_figure(const Capture& capture, const MapPlace& place, MapPyramid& pyramid, int64_t most) {
  Figure figure = empty_capture_figure(capture, place);
  HeatMap map = pyramid.whole(most);
  map.value_title = figure.map->value_title;
  map.marked = std::move(figure.map->marked);
  set_range(map, pyramid.range(), place.kind != MapKind::score);
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

#include "ui/charts/prepared_figure.h"

#include "ui/charts/chart_scene.h"
#include "ui/charts/map_painter.h"

namespace saccade::ui {
namespace {

/// Whether one would see the same. Maps are not compared.
bool same_picture(const PreparedFigure& a, const PreparedFigure& b) {
  const Figure &x = a.figure, &y = b.figure;
  return !x.map && !y.map && a.curves == b.curves && x.id == y.id && x.title == y.title && x.x == y.x && x.y == y.y &&
         x.identity_line == y.identity_line && x.vertical_line == y.vertical_line && x.vertical_label == y.vertical_label;
}

}  // namespace

std::shared_ptr<const PreparedFigure> prepare_figure(Figure figure, const std::shared_ptr<const PreparedFigure>& before) {
  auto prepared = std::make_shared<PreparedFigure>();
  prepared->figure = std::move(figure);
  const Figure& of = prepared->figure;
  const bool may_reuse = before && AxisScale::of(before->figure.y).same_kind(AxisScale::of(of.y));
  size_t next = 0;  // curves mostly stay in their order
  for (const Curve& curve : of.curves) {
    std::shared_ptr<const PreparedCurve> known;
    const size_t count = may_reuse ? before->curves.size() : 0;
    for (size_t i = 0; i < count && !known; ++i)
      if (const auto& candidate = before->curves[(next + i) % count]; candidate->curve() == curve) {
        known = candidate;
        next += i + 1;
      }
    prepared->curves.push_back(known ? known : std::make_shared<const PreparedCurve>(curve, AxisScale::of(of.y)));
  }
  if (before && same_picture(*before, *prepared)) return before;
  if (of.map && of.map->rows > 0 && of.map->columns > 0) prepared->map = map_levels(map_image(*of.map), of.map->diverging);
  prepared->x = x_scale(of);
  prepared->y = y_scale(of, prepared->curves, prepared->x);
  prepared->runs_off = runs_off(of, prepared->curves, prepared->x, prepared->y);
  prepared->filled = has_data(of);
  return prepared;
}

}  // namespace saccade::ui

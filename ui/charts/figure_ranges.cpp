#include <limits>

#include "ui/charts/chart_scene.h"
#include "ui/charts/map_painter.h"

namespace saccade::ui {

namespace {

struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return !(low <= high); }
};

/// Ends for an axis, on its own scale; a single value gets room around it.
AxisScale scale_of(Span shown, double air, const AxisRecipe& recipe) {
  AxisScale scale{0, 1, recipe.logarithmic, recipe.reversed};
  if (shown.empty()) {
    if (recipe.logarithmic) scale.low = 0.1;
    return scale;
  }
  double room = air * (shown.high - shown.low);
  if (!(shown.high - shown.low > 1e-12 * std::max(std::abs(shown.low), std::abs(shown.high)))) {
    room = recipe.logarithmic ? 0.5 : std::max(0.05 * std::abs(shown.low), 1e-6);
    if (shown.low == 0 && !recipe.logarithmic) room = 1;
  }
  scale.low = scale.value(shown.low - room);
  scale.high = scale.value(shown.high + room);
  return scale;
}

std::optional<AxisScale> fixed(const AxisRecipe& recipe, const std::optional<std::array<double, 2>>& window) {
  const auto& range = window ? window : recipe.range;
  if (!range) return {};
  const auto [low, high] = std::minmax({(*range)[0], (*range)[1]});
  if (!(high > low) || (recipe.logarithmic && !(low > 0))) return {};
  return AxisScale{low, high, recipe.logarithmic, recipe.reversed};
}

}  // namespace

AxisScale x_scale(const Figure& figure, const Window& window) {
  if (const auto scale = fixed(figure.x, window.x)) return *scale;
  if (figure.map) {
    const auto [low, high] = std::minmax({column_extent(*figure.map)[0], column_extent(*figure.map)[1]});
    return {low, high, false, figure.x.reversed};
  }
  Span span;
  const AxisScale kind{0, 1, figure.x.logarithmic, figure.x.reversed};
  bool marked = false;
  for (const Curve& curve : figure.curves) {
    marked = marked || curve.marker != Marker::none;
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      const double x = kind.shown(curve.x[i]);
      if (std::isfinite(x) && std::isfinite(curve.y[i])) span.add(x);
    }
  }
  return scale_of(span, marked ? 0.03 : 0, figure.x);
}

AxisScale y_scale(const Figure& figure, const std::vector<std::unique_ptr<PreparedCurve>>& curves, const AxisScale& x,
                  const Window& window) {
  const bool top_down = figure.map && figure.map->top_down;
  if (auto scale = fixed(figure.y, window.y)) {
    scale->reversed = scale->reversed != top_down;
    return *scale;
  }
  if (figure.map) {
    const auto [low, high] = std::minmax({row_extent(*figure.map)[0], row_extent(*figure.map)[1]});
    return {low, high, false, figure.y.reversed != top_down};
  }
  Span span;
  for (const auto& curve : curves) {
    if (curve->sorted()) {
      const auto [begin, end] = curve->range(x.low, x.high);
      const auto extent = curve->pyramid().extent(begin, end);
      if (!extent.empty()) span.add(extent.low), span.add(extent.high);
    } else {
      for (size_t i = 0; i < curve->size(); ++i)
        if (std::isfinite(curve->shown_y(i)) && curve->curve().x[i] >= x.low && curve->curve().x[i] <= x.high) span.add(curve->shown_y(i));
    }
  }
  return scale_of(span, 0.04, figure.y);
}

}  // namespace saccade::ui

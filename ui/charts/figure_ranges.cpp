#include <algorithm>
#include <limits>
#include <tuple>

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

double median(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

/// What is drawn of one curve between two x: extent, middle, first and last value and number of points (512 or so stand for more).
struct Drawn {
  Span span;
  double middle = 0, first = 0, last = 0;
  size_t points = 0;
};

void describe(Drawn& part, std::vector<double> values) {
  part.points = values.size();
  if (values.empty()) return;
  part.first = values.front(), part.last = values.back();
  for (const double v : values) part.span.add(v);
  part.middle = median(std::move(values));
}

Drawn drawn(const PreparedCurve& curve, const AxisScale& x) {
  constexpr size_t kSamples = 512;
  Drawn part;
  std::vector<double> samples;
  size_t begin = 0, end = curve.size();
  if (curve.sorted()) std::tie(begin, end) = curve.range(x.low, x.high);
  const size_t stride = curve.sorted() ? 1 + (end - begin) / kSamples : 1;
  for (size_t i = begin; i < end; i += stride) {
    const double y = curve.shown_y(i), at = curve.curve().x[i];
    if (std::isfinite(y) && at >= x.low && at <= x.high) samples.push_back(y);
  }
  describe(part, std::move(samples));
  const std::vector<double>&low = curve.shown_low(), &high = curve.shown_high();
  for (size_t i = begin; i < end && i < std::min(low.size(), high.size()); i += stride)
    for (const double shown : {low[i], high[i]})
      if (std::isfinite(shown)) part.span.add(shown);
  if (stride == 1 || part.points == 0) return part;
  const auto extent = curve.pyramid().extent(begin, end);
  part.span.add(extent.low), part.span.add(extent.high);
  return part;
}

/// The same of its x.
Drawn drawn_across(const Curve& curve, const AxisRecipe& recipe) {
  const AxisScale kind = AxisScale::of(recipe);
  Drawn part;
  std::vector<double> all;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    const double x = kind.shown(curve.x[i]);
    if (std::isfinite(x) && std::isfinite(curve.y[i])) all.push_back(x);
  }
  describe(part, std::move(all));
  return part;
}

/// The extent of all curves but those that belong among the others and run away for a while, as a diverging loss does: its
/// 10¹² nats would press the others flat. Away is ten times as far as half of the curves reach for a curve whose middle lies
/// among them, a hundred times for one that only starts or ends there; points there are drawn outside.
Span calm_span(const std::vector<Drawn>& curves) {
  std::vector<double> lows, highs;
  for (const Drawn& curve : curves)
    if (curve.points > 1) lows.push_back(curve.span.low), highs.push_back(curve.span.high);
  Span all, calm;
  for (const Drawn& curve : curves)
    if (curve.points > 0) all.add(curve.span.low), all.add(curve.span.high);
  if (lows.size() < 2) return all;
  const double low = median(lows), high = median(highs), reach = high - low;
  const auto among = [&](double y, double by) { return y >= low - by * reach && y <= high + by * reach; };
  for (const Drawn& curve : curves) {
    if (curve.points == 0) continue;
    const auto far = [&](double by) { return !among(curve.span.low, by) || !among(curve.span.high, by); };
    if (far(10) && (curve.points == 1 || among(curve.middle, 1))) continue;
    if (far(100) && (among(curve.first, 3) || among(curve.last, 3))) continue;
    calm.add(curve.span.low), calm.add(curve.span.high);
  }
  return calm.empty() ? all : calm;
}

/// Ends for an axis, on its own scale; a single value gets room around it.
AxisScale scale_of(Span shown, double air, const AxisRecipe& recipe) {
  AxisScale scale = AxisScale::of(recipe);
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
  return AxisScale{low, high, recipe.logarithmic, recipe.reversed, recipe.linear_within};
}

}  // namespace

AxisScale x_scale(const Figure& figure, const Window& window) {
  if (const auto scale = fixed(figure.x, window.x)) return *scale;
  if (figure.map) {
    const auto [low, high] = std::minmax({column_extent(*figure.map)[0], column_extent(*figure.map)[1]});
    return {low, high, false, figure.x.reversed};
  }
  bool marked = false;
  Span span;
  std::vector<Drawn> parts;
  for (const Curve& curve : figure.curves) {
    marked = marked || curve.marker != Marker::none;
    parts.push_back(drawn_across(curve, figure.x));
    if (parts.back().points > 0) span.add(parts.back().span.low), span.add(parts.back().span.high);
  }
  if (figure.identity_line) span = calm_span(parts);  // both axes hold what may run away
  return scale_of(span, marked ? 0.03 : 0, figure.x);
}

AxisScale y_scale(const Figure& figure, const PreparedCurves& curves, const AxisScale& x, const Window& window) {
  const bool top_down = figure.map && figure.map->top_down;
  if (auto scale = fixed(figure.y, window.y)) {
    scale->reversed = scale->reversed != top_down;
    return *scale;
  }
  if (figure.map) {
    const auto [low, high] = std::minmax({row_extent(*figure.map)[0], row_extent(*figure.map)[1]});
    return {low, high, false, figure.y.reversed != top_down};
  }
  std::vector<Drawn> parts;
  for (const auto& curve : curves) parts.push_back(drawn(*curve, x));
  return scale_of(calm_span(parts), 0.04, figure.y);
}

std::vector<RunsOff> runs_off(const Figure& figure, const PreparedCurves& curves, const AxisScale& x, const AxisScale& y) {
  if (figure.map) return {};
  Span across, up;
  for (const auto& curve : curves) {
    if (const Drawn part = drawn(*curve, x); part.points > 0) up.add(part.span.low), up.add(part.span.high);
    if (const Drawn part = drawn_across(curve->curve(), figure.x); part.points > 0) across.add(part.span.low), across.add(part.span.high);
  }
  std::vector<RunsOff> found;
  const auto look = [&](const Span& span, const AxisScale& scale, Qt::Edge low_edge, Qt::Edge high_edge) {
    if (span.empty()) return;
    if (span.low < scale.shown(scale.low)) found.push_back({scale.reversed ? high_edge : low_edge, scale.value(span.low)});
    if (span.high > scale.shown(scale.high)) found.push_back({scale.reversed ? low_edge : high_edge, scale.value(span.high)});
  };
  if (!figure.x.range) look(across, x, Qt::LeftEdge, Qt::RightEdge);
  if (!figure.y.range) look(up, y, Qt::BottomEdge, Qt::TopEdge);
  return found;
}

}  // namespace saccade::ui

#include "ui/kept_zoom.h"

#include <QStringList>

#include "ui/charts/figure_view.h"
#include "ui/place.h"

namespace saccade::ui {
namespace {

using Part = std::optional<std::array<double, 2>>;

/// "1000 2500", or "all".
QString text_of(const Part& part) {
  if (!part) return QStringLiteral("all");
  return QStringLiteral("%1 %2").arg(QString::number((*part)[0], 'g', 17), QString::number((*part)[1], 'g', 17));
}

Part part_of(const QString& text) {
  const QStringList ends = text.split(QLatin1Char(' '));
  bool first = false, second = false;
  const std::array<double, 2> part{ends.value(0).toDouble(&first), ends.value(1).toDouble(&second)};
  return first && second && part[0] < part[1] ? Part(part) : Part();
}

}  // namespace

void keep_zoom(const FigureView& view, Place& place, const char* key) {
  const Part y = view.zoomed() ? view.shownFigure().y.range : Part(), x = view.part();
  const bool part_of_y = y && y != view.figure().y.range;
  if (!view.prepared() || view.figure().id.empty()) return;  // what was kept is still to come
  place.set(key, view.zoomed() ? text_of(x) + QStringLiteral(" / ") + text_of(part_of_y ? y : Part()) : QString());
}

void restore_zoom(FigureView& view, const Place& place, const char* key) {
  const QStringList parts = place.value(key).toString().split(QStringLiteral(" / "));
  if (parts.size() == 2) view.look(part_of(parts[0]), part_of(parts[1]));
}

}  // namespace saccade::ui

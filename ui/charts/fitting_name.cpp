#include "ui/charts/fitting_name.h"

#include <QStringList>

#include "analysis/figures/palette.h"

namespace saccade::ui {
namespace {

/// Characters of the architecture's name, behind which stands what the title differs in; −1: nothing does.
qsizetype length_of_name(const QString& title) {
  const qsizetype comma = title.indexOf(QStringLiteral(", "));
  const auto hue = static_cast<qsizetype>(hue_title(title.toStdString()).size());  // such names are ASCII
  return hue > 0 && hue < title.size() && title.at(hue) == QLatin1Char(' ') ? hue : comma;
}

}  // namespace

QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room) {
  if (metrics.horizontalAdvance(whole) <= room) return whole;
  const qsizetype name = length_of_name(whole);
  if (name < 0) return metrics.elidedText(whole, Qt::ElideMiddle, room);
  const QString difference = whole.mid(name), dots(QChar(0x2026));
  const double rest = room - metrics.horizontalAdvance(difference);
  const double least_name = metrics.horizontalAdvance(whole.left(3) + dots);
  if (rest >= least_name) return metrics.elidedText(whole.left(name), Qt::ElideRight, rest) + difference;
  const qsizetype words = difference.indexOf(QLatin1Char(' ')) + 1;
  return metrics.elidedText(dots + QLatin1Char(' ') + difference.mid(words), Qt::ElideMiddle, room);
}

QString fittingWords(const QString& whole, const QFontMetricsF& metrics, double room) {
  const QString dot = QStringLiteral(" · ");
  if (metrics.horizontalAdvance(whole) <= room) return whole;
  QStringList words = whole.split(dot);
  while (words.size() > 1) {
    words.removeLast();
    if (const QString shown = words.join(dot) + dot + QChar(0x2026); metrics.horizontalAdvance(shown) <= room) return shown;
  }
  return fittingTitle(words.first(), metrics, room);
}

}  // namespace saccade::ui

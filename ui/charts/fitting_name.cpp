#include "ui/charts/fitting_name.h"

#include <QStringList>

namespace saccade::ui {

QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room) {
  if (metrics.horizontalAdvance(whole) <= room) return whole;
  const qsizetype comma = whole.indexOf(QStringLiteral(", "));
  if (comma < 0) return metrics.elidedText(whole, Qt::ElideMiddle, room);
  const QString difference = whole.mid(comma), dots(QChar(0x2026));
  const double rest = room - metrics.horizontalAdvance(difference);
  const double least_name = metrics.horizontalAdvance(whole.left(3) + dots);
  if (rest >= least_name) return metrics.elidedText(whole.left(comma), Qt::ElideRight, rest) + difference;
  return metrics.elidedText(dots + QLatin1Char(' ') + difference.mid(2), Qt::ElideMiddle, room);
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

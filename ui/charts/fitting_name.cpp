#include "ui/charts/fitting_name.h"

#include <QStringList>
#include <algorithm>

#include "analysis/figures/palette.h"

namespace saccade::ui {
namespace {

/// Characters of the architecture's name, behind which stands what the title differs in; −1: nothing does, or no colour tells the name.
qsizetype length_of_name(const QString& title) {
  const auto hue = static_cast<qsizetype>(hue_title(title.toStdString()).size());  // such names are ASCII
  if (hue == 0) return -1;
  return hue < title.size() && title.at(hue) == QLatin1Char(' ') ? hue : title.indexOf(QStringLiteral(", "));
}

/// "lea… 0.003, exp… 4" of "learning rate 0.003, expansion 4": what stands before the last word of every part has at most so many
/// letters, and a part of one word so many.
QString with_letters(const QString& text, qsizetype before_value, qsizetype alone) {
  QStringList parts = text.split(QStringLiteral(", "));
  for (QString& part : parts) {
    const qsizetype value = part.lastIndexOf(QLatin1Char(' '));
    const qsizetype kept = value < 0 ? alone : before_value, words = value < 0 ? part.size() : value;
    if (words > kept + 1) part.replace(kept, words - kept, QChar(0x2026));
  }
  return parts.join(QStringLiteral(", "));
}

/// All parts of the text, of each what fits; a word alone says as much as a value, and is cut last. In the least room the middle goes.
QString fitting_parts(const QString& text, const QString& before, const QFontMetricsF& metrics, double room) {
  constexpr qsizetype kLeast = 3;  // of a part of one word
  qsizetype longest = 0;
  for (const QString& part : text.split(QStringLiteral(", "))) longest = std::max(longest, part.size());
  for (qsizetype letters = longest; letters > 0; --letters)
    if (const QString shown = before + with_letters(text, letters, longest); metrics.horizontalAdvance(shown) <= room) return shown;
  for (qsizetype letters = longest; letters >= kLeast; --letters)
    if (const QString shown = before + with_letters(text, 1, letters); metrics.horizontalAdvance(shown) <= room) return shown;
  return metrics.elidedText(before + text, Qt::ElideMiddle, room);
}

}  // namespace

QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room) {
  if (metrics.horizontalAdvance(whole) <= room) return whole;
  const qsizetype name = length_of_name(whole);
  if (name < 0) return fitting_parts(whole, {}, metrics, room);
  const QString difference = whole.mid(name), dots(QChar(0x2026));
  const double rest = room - metrics.horizontalAdvance(difference);
  const double least_name = metrics.horizontalAdvance(whole.left(3) + dots);
  if (rest >= least_name) return metrics.elidedText(whole.left(name), Qt::ElideRight, rest) + difference;
  const qsizetype words = difference.indexOf(QLatin1Char(' ')) + 1;
  return fitting_parts(difference.mid(words), dots + QLatin1Char(' '), metrics, room);
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

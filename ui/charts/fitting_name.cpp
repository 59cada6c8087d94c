#include "ui/charts/fitting_name.h"

#include <QStringList>
#include <algorithm>
#include <utility>

#include "analysis/figures/palette.h"

namespace saccade::ui {
namespace {

/// Characters of the architecture's name, behind which stands what the title differs in; −1: nothing does, or no colour tells the name.
qsizetype length_of_name(const QString& title) {
  const auto hue = static_cast<qsizetype>(hue_title(title.toStdString()).size());  // such names are ASCII
  if (hue == 0) return -1;
  return hue < title.size() && title.at(hue) == QLatin1Char(' ') ? hue : title.indexOf(QStringLiteral(", "));
}

bool has_word_for_value(const QString& part) {
  const qsizetype value = part.lastIndexOf(QLatin1Char(' ')) + 1;
  return value > 0 && value < part.size() && part.at(value).isLetter();
}

/// "lr 0.003, exp… 4" of "learning rate 0.003, expansion 4": what stands before the last word of every part has at most so many letters,
/// but for the learning rate, which has a short name, and a part of one word so many; of values that are words `of_value`.
QString with_letters(const QString& text, qsizetype before_value, qsizetype alone, qsizetype of_value) {
  QStringList parts = text.split(QStringLiteral(", "));
  for (QString& part : parts) {
    const qsizetype value = part.lastIndexOf(QLatin1Char(' '));
    if (part.size() - value - 1 > of_value + 1 && has_word_for_value(part)) part = part.left(value + 1 + of_value) + QChar(0x2026);
    const qsizetype kept = value < 0 ? alone : before_value, words = value < 0 ? part.size() : value;
    if (words <= kept + 1) continue;
    const QString setting = part.left(words);
    if (setting == QLatin1String("learning rate") || setting == QLatin1String("learning_rate"))
      part.replace(0, words, QStringLiteral("lr"));
    else
      part.replace(kept, words - kept, QChar(0x2026));
  }
  return parts.join(QStringLiteral(", "));
}

/// All parts of the text, of each what fits; a word alone says as much as a value, and is cut last. In less room, where
/// a name stood `before` them, parts go whose value is a word, then the first ones; in the least the middle.
QString fitting_parts(const QString& text, const QString& before, const QFontMetricsF& metrics, double room) {
  constexpr qsizetype kLeast = 3;  // of a part of one word
  const qsizetype longest = text.size();
  for (qsizetype letters = longest; letters > 0; --letters)
    if (const QString shown = before + with_letters(text, letters, longest, longest); metrics.horizontalAdvance(shown) <= room)
      return shown;
  for (qsizetype letters = longest; letters >= kLeast; --letters)
    if (const QString shown = before + with_letters(text, 1, letters, letters); metrics.horizontalAdvance(shown) <= room) return shown;
  const QString least = with_letters(text, 1, kLeast, kLeast);
  QStringList parts = before.isEmpty() ? QStringList() : least.split(QStringLiteral(", "));
  while (parts.size() > 1) {
    const auto word = std::find_if(parts.rbegin(), parts.rend(), [](const QString& part) { return has_word_for_value(part); });
    parts.removeAt(word == parts.rend() ? 0 : parts.rend() - word - 1);
    if (const QString shown = before + parts.join(QStringLiteral(", ")); metrics.horizontalAdvance(shown) <= room) return shown;
  }
  return metrics.elidedText(before + least, Qt::ElideMiddle, room);
}

/// The name and what stands behind it, each as far as it fits: settings lose letters down to five, then the name down to eight, then
/// settings down to one, then the name down to seven, then words that are values down to four. Empty where that is still too long.
QString fitting_both(const QString& name, const QString& separator, const QString& settings, const QFontMetricsF& metrics, double room) {
  const qsizetype whole = settings.size();
  const auto with_name = [&](qsizetype letters, qsizetype of_value, qsizetype least_of_name) -> QString {
    const QString shown = separator + with_letters(settings, letters, whole, of_value);
    const double rest = room - metrics.horizontalAdvance(shown);
    const bool fits =
        rest >= std::min(metrics.horizontalAdvance(name), metrics.horizontalAdvance(name.left(least_of_name - 1) + QChar(0x2026)));
    return fits ? metrics.elidedText(name, Qt::ElideMiddle, rest) + shown : QString();
  };
  for (const auto& [least_of_settings, least_of_name] : {std::pair<qsizetype, qsizetype>{5, 8}, {1, 7}}) {
    for (qsizetype letters = whole; letters >= least_of_settings; --letters)
      if (const QString shown = name + separator + with_letters(settings, letters, whole, whole); metrics.horizontalAdvance(shown) <= room)
        return shown;
    if (const QString shown = with_name(least_of_settings, whole, least_of_name); !shown.isEmpty()) return shown;
  }
  for (qsizetype letters = whole; letters >= 4; --letters)
    if (const QString shown = with_name(1, letters, 7); !shown.isEmpty()) return shown;
  return {};
}

}  // namespace

QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room) {
  if (metrics.horizontalAdvance(whole) <= room) return whole;
  const qsizetype name = length_of_name(whole);
  if (name < 0) return fitting_parts(whole, {}, metrics, room);
  const qsizetype words = whole.indexOf(QLatin1Char(' '), name) + 1;  // behind ", " or " "
  const QString settings = whole.mid(words);
  if (const QString both = fitting_both(whole.left(name), whole.mid(name, words - name), settings, metrics, room); !both.isEmpty())
    return both;
  return fitting_parts(settings, QChar(0x2026) + QStringLiteral(" "), metrics, room);
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

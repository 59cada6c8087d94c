#include "ui/shell/same_kind.h"

#include <QList>
#include <algorithm>

namespace saccade::ui {
namespace {

/// Words that all lists begin with; at most so many that each keeps one.
qsizetype common_words(const QList<QStringList>& lists, bool from_end, qsizetype taken) {
  const auto word = [&](const QStringList& list, qsizetype i) { return from_end ? list[list.size() - 1 - i] : list[i]; };
  qsizetype most = lists.first().size() - 1 - taken;
  for (const QStringList& list : lists) most = std::min(most, list.size() - 1 - taken);
  qsizetype count = 0;
  while (count < most &&
         std::all_of(lists.begin(), lists.end(), [&](const QStringList& list) { return word(list, count) == word(lists.first(), count); }))
    ++count;
  return count;
}

bool is_name(const QString& words) {
  return std::any_of(words.begin(), words.end(), [](QChar c) { return c.isLetter() || c == QLatin1Char('/'); });
}

/// Takes off what is no letter, digit or slash at an end, as long as all have the same there.
void take_off_punctuation(QStringList& names, bool from_end) {
  const auto at = [from_end](const QString& name) { return from_end ? name.back() : name.front(); };
  while (std::all_of(names.begin(), names.end(), [&](const QString& name) {
    return name.size() > 1 && at(name) == at(names.first()) && !at(name).isLetterOrNumber() && at(name) != QLatin1Char('/');
  }))
    for (QString& name : names) name = from_end ? name.chopped(1) : name.sliced(1);
}

void shorten_paths(QStringList& names) {
  if (!std::all_of(names.begin(), names.end(), [](const QString& name) { return name.startsWith(QLatin1Char('/')); })) return;
  qsizetype same = 0, folder = 0;
  const auto all_have = [&](qsizetype i) {
    return std::all_of(names.begin(), names.end(), [&](const QString& name) { return i < name.size() && name[i] == names.first()[i]; });
  };
  for (; same < names.first().size() && all_have(same); ++same)
    if (names.first()[same] == QLatin1Char('/')) folder = same + 1;
  for (qsizetype i = 1; i < names.size(); ++i) names[i].remove(0, folder);
}

}  // namespace

QStringList different_names(const QStringList& messages) {
  if (messages.size() < 2) return {};
  QList<QStringList> words;
  for (const QString& message : messages) words << message.split(QLatin1Char(' '));
  const qsizetype before = common_words(words, false, 0), behind = common_words(words, true, before);
  QStringList names;
  for (const QStringList& each : std::as_const(words)) {
    const QStringList name = each.mid(before, each.size() - before - behind);
    names << name.join(QLatin1Char(' '));
    if (before + behind < 2 || name.size() > before + behind || !is_name(names.last())) return {};
  }
  if (std::all_of(names.begin(), names.end(), [&](const QString& name) { return name == names.first(); })) return {};
  for (const bool from_end : {false, true}) take_off_punctuation(names, from_end);
  shorten_paths(names);
  return names;
}

bool are_of_one_kind(const QStringList& messages) { return !different_names(messages).isEmpty(); }

}  // namespace saccade::ui

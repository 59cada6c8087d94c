#pragma once
#include <QStringList>

namespace saccade::ui {

/// Messages are of one kind where they say the same of different runs, files or folders: word for word equal but for one place, which holds
/// a name in each. A number alone is no name, and what is equal has two words or more, and no fewer than the name.
bool are_of_one_kind(const QStringList& messages);
/// What stands at that place in each, without punctuation that all have around it; of paths in one folder only the first is whole. Empty
/// where they are not of one kind.
QStringList different_names(const QStringList& messages);

}  // namespace saccade::ui

#pragma once
#include <QByteArray>
#include <QString>

namespace saccade::ui {

/// Puts a file in the place of `path` in one instant, written whole and synced. False, with the system's reason in `reason` (may be
/// null), when that failed; what was there before then stays and nothing else is left. QSaveFile (Qt 6.4) loses the error of its last
/// flush and would call a file written that a full disk cut off. The umask decides who may read a new file.
bool writeFile(const QString& path, const QByteArray& content, QString* reason = nullptr);

}  // namespace saccade::ui

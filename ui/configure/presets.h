#pragma once
#include <QList>
#include <QString>

#include "models/json.h"

namespace saccade::ui {

struct Preset {
  QString title;  ///< file name without ending, "-" as spaces
  QString path;
  bool own = false;  ///< saved by the user
};
/// Configs delivered with the program and those the user saved, by title.
QList<Preset> presets();
/// With today's names of settings; `note` says which ones the file has under old names, empty when none. Throws UsageError when it
/// is no config.
nlohmann::json read_preset(const QString& path, QString* note);
QString own_presets_folder();

}  // namespace saccade::ui

#include "ui/configure/presets.h"

#include <QDir>
#include <algorithm>

#include "models/config/config.h"
#include "models/config/old_names.h"
#include "models/config_text.h"
#include "models/corpus/corpus.h"
#include "models/resources.h"

namespace saccade::ui {
namespace {

void add_from(const QString& folder, bool own, QList<Preset>& list) {
  for (const QFileInfo& file : QDir(folder).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name))
    list.append({file.completeBaseName().replace(QLatin1Char('-'), QLatin1Char(' ')), file.absoluteFilePath(), own});
}

}  // namespace

QString own_presets_folder() { return QString::fromStdString((data_folder() / "presets").string()); }

QList<Preset> presets() {
  QList<Preset> list;
  add_from(QString::fromStdString((resource_folder() / "presets").string()), false, list);
  add_from(own_presets_folder(), true, list);
  std::stable_sort(list.begin(), list.end(), [](const Preset& a, const Preset& b) { return a.title.localeAwareCompare(b.title) < 0; });
  return list;
}

nlohmann::json read_preset(const QString& path, QString* note) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) throw UsageError(path.toStdString() + ": " + file.errorString().toStdString());
  nlohmann::json preset = parse_json_text(file.readAll().toStdString(), path.toStdString());
  *note = QString::fromStdString(rename_settings(preset, path.toStdString()));
  resolve_config(preset, path.toStdString());
  return preset;
}

}  // namespace saccade::ui

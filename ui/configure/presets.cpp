#include "ui/configure/presets.h"

#include <QCoreApplication>
#include <QDir>
#include <algorithm>

#include "models/config.h"
#include "models/config_text.h"
#include "models/corpus/corpus.h"

namespace saccade::ui {
namespace {

/// Beside the installed or unpacked program, in a source tree that it was built in, else where it was configured to be installed.
QString delivered_folder() {
  const QString program = QCoreApplication::applicationDirPath();
  const QStringList places{program + QStringLiteral("/" SACCADE_DATA_FROM_BIN "/presets"),
                           program + QStringLiteral("/../../../resources/presets"), program + QStringLiteral("/../../resources/presets"),
                           QStringLiteral(SACCADE_DATA_FOLDER "/presets")};
  for (const QString& place : places)
    if (QDir(place).exists()) return QDir::cleanPath(place);
  return {};
}

void add_from(const QString& folder, bool own, QList<Preset>& list) {
  if (folder.isEmpty()) return;
  for (const QFileInfo& file : QDir(folder).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name))
    list.append({file.completeBaseName().replace(QLatin1Char('-'), QLatin1Char(' ')), file.absoluteFilePath(), own});
}

}  // namespace

QString own_presets_folder() { return QString::fromStdString((data_folder() / "presets").string()); }

QList<Preset> presets() {
  QList<Preset> list;
  add_from(delivered_folder(), false, list);
  add_from(own_presets_folder(), true, list);
  std::stable_sort(list.begin(), list.end(), [](const Preset& a, const Preset& b) { return a.title.localeAwareCompare(b.title) < 0; });
  return list;
}

nlohmann::json read_preset(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) throw UsageError(path.toStdString() + ": " + file.errorString().toStdString());
  nlohmann::json preset = parse_json_text(file.readAll().toStdString(), path.toStdString());
  resolve_config(preset, path.toStdString());
  return preset;
}

}  // namespace saccade::ui

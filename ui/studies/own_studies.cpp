#include "ui/studies/own_studies.h"

#include <QDir>

#include "models/corpus/corpus.h"

namespace saccade::ui {

QString own_studies_folder() { return QString::fromStdString((data_folder() / "studies").string()); }

QStringList own_studies() {
  QStringList paths;
  for (const QFileInfo& file : QDir(own_studies_folder()).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name))
    paths << file.absoluteFilePath();
  return paths;
}

}  // namespace saccade::ui

#include <QString>

#include "ui/charts/run_titles.h"
#include "ui/run_list.h"

namespace saccade::ui {

Titles run_titles(const RunList& runs) {
  Titles titles;
  for (int row = 0; row < runs.rowCount(); ++row) titles.push_back(runs.index(row).data(RunList::TitleRole).toString().toStdString());
  return titles;
}

QString run_label(const Run& run) {
  return QStringLiteral("%1, seed %2").arg(QString::fromStdString(run.info().title)).arg(run.info().seed);
}

}  // namespace saccade::ui

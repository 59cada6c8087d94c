#pragma once
#include <QCoreApplication>
#include <QString>

#include "ui/run_list.h"

namespace saccade::ui {

/// What a chart without anything to draw says: `otherwise`, unless it is that no run is shown.
inline QString empty_words(const RunList& runs, const QString& otherwise) {
  if (runs.rowCount() == 0 || !runs.visibleRuns().empty() || runs.unread() > 0) return otherwise;
  return QCoreApplication::translate("EmptyWords", "No run is shown. Clear the filter, or switch runs visible in the list.");
}

}  // namespace saccade::ui

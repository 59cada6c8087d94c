#pragma once
#include <QString>
#include <QStringList>

namespace saccade::ui {

/// Runs that were thrown away stand in the hidden folder .trash beside the others, as they were, until someone brings them back or removes
/// that folder. Moving is one rename each.
/// The runs that were moved; `reason`: of the first that could not be.
QStringList trash_runs(const QStringList& directories, QString* reason);
/// Brings back those that were thrown away last, together. Their directories; empty with a reason where nothing can be brought back.
QStringList restore_runs(const QString& folder, QString* reason);
int trashed_runs(const QString& folder);

}  // namespace saccade::ui

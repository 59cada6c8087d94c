#pragma once
#include <QString>
#include <QStringList>

namespace saccade::ui {

/// Where study files that were written in the window are kept, and their paths by name.
QString own_studies_folder();
QStringList own_studies();

}  // namespace saccade::ui

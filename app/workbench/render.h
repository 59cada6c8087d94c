#pragma once
#include <QString>

namespace saccade::workbench {

/// Draws a figure file without a window. The exit code: 0 written, 1 could not be written, 2 unknown kind of file,
/// 3 the figure file cannot be read.
int render_figure(const QString& figure, const QString& out, bool dark);

}  // namespace saccade::workbench

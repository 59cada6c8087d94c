#pragma once
#include <QString>

class QApplication;
class QWidget;

namespace saccade::ui {
class Session;
}

namespace saccade::workbench {

/// Runs until the folder has been read and the pages have had time to draw, saves the window's picture and returns the exit code.
int take_screenshot(QApplication& application, QWidget& window, ui::Session& session, const QString& file);

}  // namespace saccade::workbench

#pragma once

class QMainWindow;

namespace saccade::ui::help {

/// First steps and every shortcut of the window, in a window of its own.
void showKeyboard(QMainWindow* window);
void showAbout(QMainWindow* window);

}  // namespace saccade::ui::help

#pragma once
#include <QDialog>
#include <QSize>
#include <QWidget>

namespace saccade::ui {

/// As large as `wanted` where its window leaves that: in a small one the buttons below stay on the screen.
inline void resize_within_window(QDialog& dialog, const QSize& wanted) {
  const QSize frame(40, 60);  // with the title that the desktop puts above
  const QWidget* parent = dialog.parentWidget();
  dialog.resize(parent ? wanted.boundedTo(parent->window()->size() - frame).expandedTo(dialog.minimumSizeHint()) : wanted);
}

}  // namespace saccade::ui

#pragma once
#include <QAction>
#include <QString>
#include <QToolButton>
#include <cmath>

#include "ui/run_summary.h"

namespace saccade::ui {

/// "2 h 5 min left"; a dash where it is not known.
inline QString left_of(double seconds) {
  return std::isnan(seconds) ? QStringLiteral("–") : QObject::tr("%1 left").arg(formatDuration(seconds));
}

/// A button of an action, for a card's controls.
inline QToolButton* button_of(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setAccessibleName(action->iconText());
  return button;
}

}  // namespace saccade::ui

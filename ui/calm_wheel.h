#pragma once
#include <QEvent>
#include <QObject>
#include <QWidget>

namespace saccade::ui {

/// Lets the wheel scroll the page instead of changing what the pointer happens to pass over.
inline void calm_wheel(QWidget* field) {
  class Filter : public QObject {
   public:
    using QObject::QObject;
    bool eventFilter(QObject* watched, QEvent* event) override {
      if (event->type() != QEvent::Wheel || static_cast<QWidget*>(watched)->hasFocus()) return false;
      event->ignore();
      return true;
    }
  };
  field->setFocusPolicy(field->focusPolicy() == Qt::WheelFocus ? Qt::StrongFocus : field->focusPolicy());
  field->installEventFilter(new Filter(field));
}

}  // namespace saccade::ui

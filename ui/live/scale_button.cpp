#include "ui/live/scale_button.h"

#include <algorithm>

#include "ui/wrapped_tip.h"

namespace saccade::ui {

ScaleButton::ScaleButton(const QString& axis, const QString& help, const QKeySequence& key, QWidget* parent)
    : QToolButton(parent), axis_(axis) {
  setToolTip(
      wrapped_tip(tr("%1: linear, logarithmic, logarithmic to both sides of zero (%2)").arg(help, key.toString(QKeySequence::NativeText))));
  setShortcut(key);
  setCheckable(true);
  setScale(linear);
  connect(this, &QToolButton::clicked, this, [this] {
    setScale((scale_ + 1) % 3);
    Q_EMIT scaleChanged();
  });
}

void ScaleButton::setScale(int scale) {
  scale_ = static_cast<Scale>(std::clamp(scale, 0, 2));
  setChecked(scale_ != linear);
  const QKeySequence key = shortcut();
  setText(scale_ == symmetric ? tr("±log %1").arg(axis_) : tr("log %1").arg(axis_));
  setShortcut(key);  // a new text takes it away
  setAccessibleName(scale_ == linear        ? tr("%1 axis: linear").arg(axis_)
                    : scale_ == logarithmic ? tr("%1 axis: logarithmic").arg(axis_)
                                            : tr("%1 axis: logarithmic to both sides of zero").arg(axis_));
}

}  // namespace saccade::ui

#pragma once
#include <QToolButton>

namespace saccade::ui {

/// The scale of an axis: linear, logarithmic, logarithmic to both sides of zero; a click goes on to the next.
class ScaleButton : public QToolButton {
  Q_OBJECT
 public:
  enum Scale { linear, logarithmic, symmetric };
  /// `axis`: "x", "y". `key` goes on, too.
  ScaleButton(const QString& axis, const QString& help, const QKeySequence& key, QWidget* parent = nullptr);

  Scale scale() const { return scale_; }
  void setScale(int scale);  ///< without scaleChanged()

 Q_SIGNALS:
  void scaleChanged();

 private:
  QString axis_;
  Scale scale_ = linear;
};

}  // namespace saccade::ui

#pragma once
#include <QScrollArea>

class QBoxLayout;

namespace saccade::ui {

/// Two parts of a page beside each other; where it is too narrow for both, one over the other, to scroll through.
class TwoColumns : public QScrollArea {
  Q_OBJECT
 public:
  struct Part {
    QWidget* widget;
    int stretch, narrow_stretch;
  };
  /// `narrow`: pixels below which the parts stand over each other; then their height is `heights` times what is seen.
  TwoColumns(const Part& left, const Part& right, int narrow, double heights, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void narrowChanged(bool narrow);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  const Part left_, right_;
  QBoxLayout* layout_;
  const int narrow_;
  const double heights_;
};

}  // namespace saccade::ui

#pragma once
#include <QWidget>
#include <array>

#include "models/training/plan.h"

namespace saccade::ui {

/// Memory by part, against what the device has free: weights, gradients, optimizer, activations.
class MemoryBar : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryBar(QWidget* parent = nullptr);
  void setPlan(const Plan& plan, int64_t available);
  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  int columns(int width) const;  ///< of the legend, which is never cut

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Part {
    QString name;
    double bytes = 0;
  };
  static QString words(const Part& part);

  std::array<Part, 5> parts_;
  double available_ = 0;
};

}  // namespace saccade::ui

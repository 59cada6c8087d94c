#pragma once
#include <QWidget>
#include <optional>

#include "analysis/figures/figure.h"

class QComboBox;

namespace saccade::ui {

/// How to smooth, and over how much of the x axis.
class SmoothingChoice : public QWidget {
  Q_OBJECT
 public:
  explicit SmoothingChoice(QWidget* parent = nullptr);

  Smoothing smoothing() const;
  void setSmoothing(const Smoothing& smoothing);
  /// Proposes widths for an axis of this length, and takes a hundredth of it where the present one does not fit the axis at all.
  void setLength(double length);

 Q_SIGNALS:
  void changed();

 private:
  QComboBox *kind_, *width_;
  double length_ = 0;
};

/// "200 k", "1.5M", "3e8"; nothing when it is no number above 0.
std::optional<double> quantity(const QString& text);

}  // namespace saccade::ui

#include "ui/live/smoothing_choice.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <cmath>

#include "ui/calm_wheel.h"
#include "ui/charts/ticks.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

std::optional<double> quantity(const QString& text) {
  static const QString units = QStringLiteral("kMGTPE");
  QString number = text.simplified();
  double scale = 1;
  if (!number.isEmpty() && units.contains(number.back())) {
    scale = std::pow(1000.0, 1.0 + static_cast<double>(units.indexOf(number.back())));
    number.chop(1);
  }
  bool good = false;
  const double value = number.trimmed().toDouble(&good) * scale;
  if (!good || !(value > 0) || !std::isfinite(value)) return {};
  return value;
}

SmoothingChoice::SmoothingChoice(QWidget* parent) : QWidget(parent), kind_(new QComboBox(this)), width_(new QComboBox(this)) {
  kind_->addItem(tr("no smoothing"), static_cast<int>(Smoothing::Kind::none));
  kind_->addItem(tr("EMA"), static_cast<int>(Smoothing::Kind::exponential));
  kind_->addItem(tr("window"), static_cast<int>(Smoothing::Kind::window));
  kind_->setAccessibleName(tr("Smoothing of what is recorded at every step"));
  kind_->setToolTip(
      wrapped_tip(tr("Of training loss, gradient norm and speed; the raw values of a single run stay visible beneath. EMA: "
                     "exponential mean without bias at the start. Window: centred mean, where the whole window has values.")));
  width_->setEditable(true);
  width_->setAccessibleName(tr("Reach of the smoothing, in units of the x axis"));
  width_->setToolTip(wrapped_tip(tr("Reach of the smoothing, in units of the x axis: 200 k, 1.5 M …")));
  width_->setInsertPolicy(QComboBox::NoInsert);
  width_->setMinimumContentsLength(6);
  width_->hide();
  for (QComboBox* box : {kind_, width_}) calm_wheel(box);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(kind_);
  row->addWidget(width_);
  connect(kind_, &QComboBox::currentIndexChanged, this, [this] {
    width_->setVisible(kind_->currentIndex() > 0);
    Q_EMIT changed();
  });
  connect(width_, &QComboBox::activated, this, &SmoothingChoice::changed);
  connect(width_->lineEdit(), &QLineEdit::editingFinished, this, &SmoothingChoice::changed);
}

Smoothing SmoothingChoice::smoothing() const {
  const auto kind = static_cast<Smoothing::Kind>(kind_->currentData().toInt());
  return {kind, quantity(width_->currentText()).value_or(0)};
}

void SmoothingChoice::setSmoothing(const Smoothing& smoothing) {
  const QSignalBlocker kind_blocker(kind_), width_blocker(width_);
  kind_->setCurrentIndex(std::max(0, kind_->findData(static_cast<int>(smoothing.kind))));
  width_->setVisible(kind_->currentIndex() > 0);
  if (smoothing.width > 0) width_->setEditText(short_number(smoothing.width));
}

void SmoothingChoice::setLength(double length) {
  if (!(length > 0) || width_->hasFocus()) return;
  const double width = smoothing().width;
  const bool fits = width > 0 && width <= length && width >= 1e-5 * length;
  if (fits && length < 4 * length_ && length_ < 4 * length) return;
  length_ = length;
  const double power = std::pow(10.0, std::floor(std::log10(length / 100))), lead = length / 100 / power;
  const double hundredth = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  const QSignalBlocker blocker(width_);
  const QString before = width_->currentText();
  width_->clear();
  for (const double share : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0}) width_->addItem(short_number(share * hundredth));
  width_->setEditText(fits ? before : short_number(hundredth));
}

}  // namespace saccade::ui

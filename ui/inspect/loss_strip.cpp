#include "ui/inspect/loss_strip.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/charts/colours.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

namespace {
constexpr int kHeight = 40, kLeastLabel = 44, kLabelGap = 4;
constexpr double kNoLoss = 1e-9;
}  // namespace

LossStrip::LossStrip(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Loss of every token"));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  setCursor(Qt::PointingHandCursor);
}

QSize LossStrip::sizeHint() const { return {400, kHeight}; }
QSize LossStrip::minimumSizeHint() const { return {80, kHeight}; }

void LossStrip::setLosses(std::vector<float> losses) {
  losses_ = std::move(losses);
  changed_.clear();
  describe();
}

void LossStrip::setChanged(std::vector<double> losses) {
  changed_ = std::move(losses);
  describe();
}

void LossStrip::setQuery(int query) {
  query_ = query;
  describe();
}

void LossStrip::describe() {
  setAccessibleDescription(summary());
  update();
}

QString LossStrip::summary() const {
  if (query_ < 0 || query_ >= static_cast<int>(losses_.size())) return {};
  const auto q = static_cast<size_t>(query_);
  QString text = tr("Query %1: loss %2 nats").arg(query_).arg(short_number(static_cast<double>(losses_[q])));
  if (q < changed_.size()) text += tr(", %1 with the change").arg(short_number(changed_[q]));
  return text;
}

double LossStrip::largest() const {
  double most = kNoLoss;
  for (const float loss : losses_)
    if (std::isfinite(loss)) most = std::max(most, static_cast<double>(loss));
  for (const double loss : changed_)
    if (std::isfinite(loss)) most = std::max(most, loss);
  return most;
}

/// The greatest loss; nothing where no query of a task's part has one.
QString LossStrip::label() const { return largest() > kNoLoss ? short_number(largest()) : QString(); }

/// Room for it at the left, which may be as long as "6.38·10⁻⁴".
int LossStrip::labelWidth() const { return std::max(kLeastLabel, fontMetrics().horizontalAdvance(label()) + 2 * kLabelGap); }

int LossStrip::queryAt(double x) const {
  const int left = labelWidth();
  const double room = width() - left;
  if (losses_.empty() || room <= 0 || x < left) return -1;
  return std::clamp(static_cast<int>((x - left) / room * static_cast<double>(losses_.size())), 0, static_cast<int>(losses_.size()) - 1);
}

void LossStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (losses_.empty()) return;
  const bool dark = palette().color(QPalette::Base).lightness() < 128;
  const FigureColours colours = FigureColours::of(dark);
  const int begin = labelWidth();
  const double most = largest(), bar = static_cast<double>(width() - begin) / static_cast<double>(losses_.size()), base = height() - 3;
  const auto together = static_cast<size_t>(std::max(1.0, std::ceil(1 / bar)));  // losses that share a pixel: the greatest of them
  const auto bar_of = [&](size_t t, double loss) {
    const double high = std::isfinite(loss) ? (base - 3) * std::max(0.0, loss) / most : base - 3;
    const double left = begin + static_cast<double>(t / together * together) * bar, wide = static_cast<double>(together) * bar;
    return QRectF(left, base - high, std::max(1.0, wide - (bar > 4 ? 1 : 0)), high);
  };
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(QRectF(0, 0, begin - kLabelGap, height() / 2.0), Qt::AlignRight | Qt::AlignTop, label());
  painter.drawText(QRectF(0, height() / 2.0, begin - kLabelGap, height() / 2.0), Qt::AlignRight | Qt::AlignBottom, tr("loss"));
  const QColor quiet = colours.quiet_text, more = seen_colour({0xD5, 0x5E, 0x00}, dark), less = seen_colour({0x00, 0x72, 0xB2}, dark);
  for (size_t first = 0; first < losses_.size(); first += together) {
    size_t t = first;
    const auto end = std::min(first + together, losses_.size());
    for (size_t i = first; i < end; ++i) {
      const bool differs = i < changed_.size() && std::abs(changed_[i] - static_cast<double>(losses_[i])) >= 1e-6;
      if (differs || losses_[i] > losses_[t]) t = i;
    }
    const auto loss = static_cast<double>(losses_[t]);
    const bool asked = query_ >= 0 && static_cast<size_t>(query_) >= first && static_cast<size_t>(query_) < end;
    painter.fillRect(bar_of(t, loss), asked ? palette().color(QPalette::Text) : quiet);
    if (t >= changed_.size() || std::abs(changed_[t] - loss) < 1e-6) continue;
    const QRectF before = bar_of(t, loss), after = bar_of(t, changed_[t]);
    const double top = std::min(before.top(), after.top()), bottom = std::max(before.top(), after.top());
    painter.fillRect(QRectF(before.left(), top, before.width(), std::max(1.5, bottom - top)), changed_[t] > loss ? more : less);
  }
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawLine(QPointF(begin, base), QPointF(width(), base));
  if (query_ >= 0 && query_ < static_cast<int>(losses_.size())) {
    painter.setPen(QPen(palette().color(QPalette::Text), 1));
    const double x = begin + (static_cast<double>(query_) + 0.5) * bar;
    painter.drawLine(QPointF(x, 0), QPointF(x, 3));
  }
  if (hasFocus()) {
    painter.setPen(palette().color(QPalette::Highlight));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

void LossStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const int query = queryAt(event->position().x()); query >= 0) Q_EMIT queryClicked(query);
}

void LossStrip::mouseMoveEvent(QMouseEvent* event) {
  if (const int query = queryAt(event->position().x()); query >= 0 && event->buttons() & Qt::LeftButton) Q_EMIT queryClicked(query);
}

bool LossStrip::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int query = queryAt(help->pos().x());
  if (query < 0) {
    QToolTip::hideText();
    return true;
  }
  const auto q = static_cast<size_t>(query);
  QString text = tr("query %1, loss %2 nats").arg(query).arg(short_number(static_cast<double>(losses_[q])));
  if (q < changed_.size()) text += tr(", with the change %1").arg(short_number(changed_[q]));
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace saccade::ui

#include "ui/configure/memory_bar.h"

#include <QPainter>

#include "ui/run_summary.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {
// Okabe and Ito: blue, sky blue, green, orange.
constexpr std::array<QRgb, 4> colours{0xff0072b2, 0xff56b4e9, 0xff009e73, 0xffe69f00};
constexpr int bar_height = 12;
}  // namespace

MemoryBar::MemoryBar(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.88);
  setFont(small);
}

void MemoryBar::setPlan(const Plan& plan, int64_t available) {
  parts_ = {Part{tr("weights"), static_cast<double>(plan.weight_bytes)}, Part{tr("gradients"), static_cast<double>(plan.gradient_bytes)},
            Part{tr("optimizer"), static_cast<double>(plan.optimizer_bytes)},
            Part{tr("activations"), static_cast<double>(plan.activation_bytes)}};
  available_ = static_cast<double>(available);
  QStringList words;
  for (const Part& part : parts_) words << tr("%1 %2").arg(part.name, formatBytes(part.bytes));
  setAccessibleName(tr("Memory at the peak: %1").arg(words.join(QStringLiteral(", "))));
  setToolTip(tr("The whole bar is the memory free now, or the run's peak where that is more."));
  update();
}

QSize MemoryBar::sizeHint() const { return {200, bar_height + 6 + 2 * (fontMetrics().height() + 2)}; }

void MemoryBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  double total = 0;
  for (const Part& part : parts_) total += part.bytes;
  if (total <= 0) return;
  painter.fillRect(QRect(0, 0, width(), bar_height), lineColour(palette()));
  const double scale = width() / std::max(total, available_);
  const int line = fontMetrics().height() + 2, half = width() / 2;
  double x = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    painter.fillRect(QRectF(x, 0, parts_[i].bytes * scale, bar_height), QColor(colours[i]));
    x += parts_[i].bytes * scale;
    const int left = static_cast<int>(i % 2) * half, top = bar_height + 6 + static_cast<int>(i / 2) * line;
    painter.fillRect(QRect(left, top + (line - 8) / 2, 8, 8), QColor(colours[i]));
    painter.setPen(quietText(palette()));
    const QString text = parts_[i].name + QLatin1Char(' ') + formatBytes(parts_[i].bytes);
    painter.drawText(QRect(left + 13, top, half - 15, line), Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(text, Qt::ElideRight, half - 15));
  }
}

}  // namespace saccade::ui

#include "ui/configure/memory_bar.h"

#include <QPainter>
#include <algorithm>

#include "ui/run_summary.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {
// Okabe and Ito: blue, sky blue, green, orange.
constexpr std::array<QRgb, 5> colours{0xff0072b2, 0xff56b4e9, 0xff009e73, 0xffe69f00, 0xffcc79a7};
constexpr int bar_height = 12, kSquare = 13;
}  // namespace

MemoryBar::MemoryBar(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.88);
  setFont(small);
}

void MemoryBar::setPlan(const Plan& plan, int64_t available) {
  parts_ = {Part{tr("weights"), static_cast<double>(plan.weight_bytes)}, Part{tr("gradients"), static_cast<double>(plan.gradient_bytes)},
            Part{tr("optimizer"), static_cast<double>(plan.optimizer_bytes)},
            Part{tr("activations"), static_cast<double>(plan.activation_bytes)},
            Part{tr("probes"), static_cast<double>(plan.device_bytes() - plan.peak_bytes - plan.runtime_bytes)}};
  available_ = static_cast<double>(available);
  QStringList words;
  for (const Part& part : parts_) words << tr("%1 %2").arg(part.name, formatBytes(part.bytes));
  setAccessibleName(tr("Memory at the peak: %1").arg(words.join(QStringLiteral(", "))));
  setToolTip(tr("The whole bar is the memory free now, or the run's peak where that is more."));
  updateGeometry();
  update();
}

QString MemoryBar::words(const Part& part) { return part.name + QLatin1Char(' ') + formatBytes(part.bytes); }

/// Two parts a line where both can be read, else one.
int MemoryBar::columns(int width) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return fontMetrics().horizontalAdvance(words(part)) <= width / 2 - kSquare - 2; })
             ? 2
             : 1;
}

int MemoryBar::heightForWidth(int width) const {
  const int count = static_cast<int>(parts_.size()), across = columns(width);
  return bar_height + 6 + (count + across - 1) / across * (fontMetrics().height() + 2);
}

QSize MemoryBar::sizeHint() const { return {200, heightForWidth(200)}; }

void MemoryBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  double total = 0;
  for (const Part& part : parts_) total += part.bytes;
  if (total <= 0) return;
  painter.fillRect(QRect(0, 0, width(), bar_height), lineColour(palette()));
  const double scale = width() / std::max(total, available_);
  const int line = fontMetrics().height() + 2, across = columns(width()), half = width() / across;
  double x = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    painter.fillRect(QRectF(x, 0, parts_[i].bytes * scale, bar_height), QColor(colours[i]));
    x += parts_[i].bytes * scale;
    const int left = static_cast<int>(i) % across * half, top = bar_height + 6 + static_cast<int>(i) / across * line;
    painter.fillRect(QRect(left, top + (line - 8) / 2, 8, 8), QColor(colours[i]));
    painter.setPen(quietText(palette()));
    painter.drawText(QRect(left + kSquare, top, half - kSquare - 2, line), Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(words(parts_[i]), Qt::ElideRight, half - kSquare - 2));
  }
}

}  // namespace saccade::ui

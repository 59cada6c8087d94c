#include "ui/charts/note_lines.h"

#include <QFontMetricsF>
#include <QGuiApplication>
#include <QPainter>
#include <cmath>

#include "ui/charts/colours.h"

namespace saccade::ui {
namespace {

constexpr double kUnit = 2, kUnitsPerMm = 72 * kUnit / 25.4;  // as figures on paper are laid out
constexpr double kSmaller = 0.85, kEdgeMm = 1.5;

QFont font_of(const FigureStyle& style) {
  QFont font = QGuiApplication::font();
  if (!style.families.isEmpty()) font.setFamilies(style.families);
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(kSmaller * style.font_points * kUnit))));
  return font;
}

QString text_of(const Figure& figure) {
  QStringList lines;
  for (const std::string& note : figure.notes) lines << QString::fromStdString(note);
  return lines.join(QLatin1Char('\n'));
}

QRectF room_of(const Figure& figure) { return {0, 0, (figure.width_mm - 2 * kEdgeMm) * kUnitsPerMm, 1e5}; }

}  // namespace

double notes_height_mm(const Figure& figure, const FigureStyle& style) {
  if (figure.notes.empty()) return 0;
  const QFontMetricsF metrics(font_of(style));
  return metrics.boundingRect(room_of(figure), Qt::TextWordWrap, text_of(figure)).height() / kUnitsPerMm + 2 * kEdgeMm;
}

void paint_notes(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style) {
  if (figure.notes.empty()) return;
  painter.save();
  painter.translate(area.topLeft());
  const double scale = area.width() / (figure.width_mm * kUnitsPerMm);
  painter.scale(scale, scale);
  painter.setFont(font_of(style));
  painter.setPen(FigureColours::of(style.dark).quiet_text);
  painter.drawText(room_of(figure).translated(kEdgeMm * kUnitsPerMm, kEdgeMm * kUnitsPerMm), Qt::TextWordWrap, text_of(figure));
  painter.restore();
}

}  // namespace saccade::ui

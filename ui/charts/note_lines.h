#pragma once
#include <QRectF>

#include "ui/charts/figure_view.h"

class QPainter;

namespace saccade::ui {

/// What a figure's notes need below it in files, mm; 0 without notes.
double notes_height_mm(const Figure& figure, const FigureStyle& style);
/// Writes them from the top of `area`, as wide as that was for notes_height_mm(): Figure::width_mm.
void paint_notes(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style);

}  // namespace saccade::ui

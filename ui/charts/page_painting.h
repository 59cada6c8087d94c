#pragma once
#include <QImage>
#include <QSizeF>
#include <QString>

#include "analysis/figures/page.h"

class QPainter;

namespace saccade::ui {

/// The size of the paper: its rows grow where legends need more room.
QSizeF page_size_mm(const FigurePage& page);
/// The panels in their rows, each by paintFigure(), with letters and titles over them.
void paintPage(QPainter& painter, const QRectF& area, const FigurePage& page);
/// Writes by file suffix: .pdf .svg .png .csv .tex. False with a one-line reason when it can't; never leaves half a file.
bool exportPage(const FigurePage& page, const QString& path, QString* reason);

}  // namespace saccade::ui

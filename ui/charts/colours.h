#pragma once
#include <QColor>
#include <QList>

#include "analysis/figures/figure.h"

namespace saccade::ui {

/// A curve's colour on a light or dark ground: the figure's own, brightened where it would hardly be seen (3.6 : 1; more would
/// make blue look like sky blue).
QColor seen_colour(const Colour& colour, bool dark);

/// Ground, ink and lines of a figure.
struct FigureColours {
  QColor ground, text, quiet_text, axis, grid, accent;
  static FigureColours of(bool dark);
};

/// 255 steps of a perceptually even map by its name (colour_maps()); for differences a blue–white–red one, centred.
const QList<QRgb>& colour_map(bool diverging, const std::string& name = "viridis");

/// WCAG contrast ratio of two colours, 1 … 21.
double contrast(const QColor& a, const QColor& b);

}  // namespace saccade::ui

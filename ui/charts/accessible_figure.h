#pragma once

namespace saccade::ui {

/// Makes every FigureView a chart with a text summary for screen readers. May be called often.
void install_accessible_figure();

}  // namespace saccade::ui

#pragma once
class QMenu;

namespace saccade::ui {

class FigureView;

/// PDF, SVG, PNG, CSV, copy picture, copy numbers: of the figure as the view shows it. The view owns the menu.
QMenu* make_export_menu(FigureView& view);

}  // namespace saccade::ui

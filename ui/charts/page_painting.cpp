#include "ui/charts/page_painting.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>

#include "ui/charts/colours.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/legend.h"

namespace saccade::ui {
namespace {

constexpr double kGap = 4;  // mm between panels
constexpr double kPointMm = 25.4 / 72;

constexpr double kFine = 20;  // units to a millimetre in which legends are laid out, whatever they are painted on: letters of other
                              // sizes are not as wide in proportion, and lines of names would break elsewhere than where room was left

QFont font_of(const FigurePage& page, double per_mm) {
  QFont font;
  QStringList families = FigureStyle::forExport().families;
  families.prepend(QString::fromStdString(page.style.font));
  font.setFamilies(families);
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(page.style.font_points * kPointMm * per_mm))));
  return font;
}

int columns_of(const FigurePage& page) {
  return std::clamp(static_cast<int>(page.style.columns), 1, std::max(1, static_cast<int>(page.panels.size())));
}

/// mm, of a panel.
double panel_width(const FigurePage& page) {
  const int columns = columns_of(page);
  return (page.style.width_mm - kGap * (columns - 1)) / columns;
}

/// Where the page's names stand: as its style says, but above where names at the ends of curves would leave a panel less than half of its
/// width.
LegendPlace legend_place(const FigurePage& page) {
  if (page.style.legend != LegendPlace::direct) return page.style.legend;
  const QFontMetricsF metrics(font_of(page, kFine));
  const double most = 0.5 * panel_width(page) * kFine;
  for (const Figure& panel : page.panels)
    for (const Curve& curve : panel.curves)
      if (curve.in_legend && metrics.horizontalAdvance(QString::fromStdString(curve.label)) > most) return LegendPlace::above;
  return LegendPlace::direct;
}

/// Several panels have one legend, over all of them.
bool shares_legend(const FigurePage& page) { return page.panels.size() > 1 && legend_place(page) == LegendPlace::above; }

FigureStyle style_of(const FigurePage& page) {
  FigureStyle style = FigureStyle::forExport();
  style.font_points = page.style.font_points;
  style.families.prepend(QString::fromStdString(page.style.font));
  const LegendPlace place = legend_place(page);
  style.legend = shares_legend(page)            ? LegendKind::none
                 : place == LegendPlace::direct ? LegendKind::direct
                 : place == LegendPlace::none   ? LegendKind::none
                                                : LegendKind::whole;
  return style;
}

bool has_heads(const FigurePage& page) {
  return (page.style.letters && page.panels.size() > 1) ||
         std::any_of(page.panels.begin(), page.panels.end(), [](const Figure& panel) { return !panel.title.empty(); });
}

double head_mm(const FigurePage& page) { return has_heads(page) ? 1.5 * page.style.font_points * kPointMm : 0; }

/// The names of all panels, each once.
Figure legend_figure(const FigurePage& page) {
  Figure all;
  for (const Figure& panel : page.panels)
    for (const Curve& curve : panel.curves)
      if (curve.in_legend && std::none_of(all.curves.begin(), all.curves.end(), [&](const Curve& c) { return c.label == curve.label; })) {
        all.curves.push_back(curve);
        all.curves.back().width *= page.style.line_points / 1.5;
      }
  return all;
}

/// In units of kFine to the millimetre; its entries point into `figure`.
Legend shared_legend(const FigurePage& page, const Figure& figure) {
  return legend_of(figure, QFontMetricsF(font_of(page, kFine)), {page.style.width_mm * kFine, 1e6}, kPointMm * kFine, LegendKind::whole);
}

/// What names at the ends of curves need from top to bottom.
double labels_mm(const FigurePage& page, const Figure& panel) {
  constexpr double kAxis = 12;
  if (legend_place(page) != LegendPlace::direct) return 0;
  const auto names = std::count_if(panel.curves.begin(), panel.curves.end(), [](const Curve& c) { return c.in_legend && !c.x.empty(); });
  return static_cast<double>(names) * 1.3 * page.style.font_points * kPointMm + kAxis;
}

/// Columns and rows as there are panels, with the sizes of all.
struct Grid {
  int columns = 1;
  double width = 0;             ///< mm, of a panel
  double legend = 0;            ///< mm, over all
  std::vector<double> heights;  ///< mm, of the rows with their heads
};

/// A panel as it is drawn: its size, lines of the page's width, colours of the page's map.
Figure panel_of(const FigurePage& page, size_t i, double width) {
  Figure panel = page.panels[i];
  panel.width_mm = width, panel.height_mm = page.style.panel_height_mm;
  for (Curve& curve : panel.curves) curve.width *= page.style.line_points / 1.5;
  if (panel.map) panel.map->colours = page.style.colour_map;
  return panel;
}

Grid grid_of(const FigurePage& page) {
  Grid grid;
  grid.columns = columns_of(page);
  grid.width = panel_width(page);
  const FigureStyle style = style_of(page);
  for (size_t i = 0; i < page.panels.size(); ++i) {
    const size_t row = i / static_cast<size_t>(grid.columns);
    if (row == grid.heights.size()) grid.heights.push_back(0);
    const Figure panel = panel_of(page, i, grid.width);
    grid.heights[row] =
        std::max(grid.heights[row], head_mm(page) + std::max(figure_size_mm(panel, style).height(), labels_mm(page, panel)));
  }
  const Figure names = legend_figure(page);
  if (shares_legend(page)) grid.legend = shared_legend(page, names).height / kFine;
  return grid;
}

void paint_head(QPainter& painter, const QRectF& area, const FigurePage& page, size_t i, double per_mm) {
  QFont font = font_of(page, per_mm);
  font.setBold(true);
  painter.setFont(font);
  painter.setPen(FigureColours::of(false).text);
  if (page.style.letters && page.panels.size() > 1)
    painter.drawText(area, Qt::AlignLeft | Qt::AlignVCenter, QStringLiteral("(%1)").arg(QChar(static_cast<char16_t>(u'a' + i))));
  font.setBold(false);
  painter.setFont(font);
  painter.drawText(area, Qt::AlignHCenter | Qt::AlignVCenter, QString::fromStdString(page.panels[i].title));
}

/// Axes from 0 to 1 would look like a result.
void paint_emptiness(QPainter& painter, const QRectF& area, const FigurePage& page, const Figure& panel, double per_mm) {
  painter.setFont(font_of(page, per_mm));
  painter.setPen(FigureColours::of(false).text);
  const std::string what = panel.x.title.empty() || panel.y.title.empty() ? panel.title : panel.y.title + " by " + panel.x.title;
  painter.drawText(area, Qt::AlignCenter | Qt::TextWordWrap, QStringLiteral("no run has recorded\n%1").arg(QString::fromStdString(what)));
}

}  // namespace

QSizeF page_size_mm(const FigurePage& page) {
  const Grid grid = grid_of(page);
  double height = grid.legend + kGap * static_cast<double>(grid.heights.empty() ? 0 : grid.heights.size() - 1);
  for (const double row : grid.heights) height += row;
  return {page.style.width_mm, std::max(height, 1.0)};
}

void paintPage(QPainter& painter, const QRectF& area, const FigurePage& page) {
  const Grid grid = grid_of(page);
  const FigureStyle style = style_of(page);
  const double per_mm = area.width() / page.style.width_mm, head = head_mm(page) * per_mm;
  if (shares_legend(page)) {
    const Figure names = legend_figure(page);
    painter.save();
    painter.translate(area.topLeft());
    painter.scale(per_mm / kFine, per_mm / kFine);
    paint_legend(painter, shared_legend(page, names), font_of(page, kFine), FigureColours::of(false), false, kPointMm * kFine);
    painter.restore();
  }
  double top = area.top() + grid.legend * per_mm;
  for (size_t i = 0; i < page.panels.size(); ++i) {
    const auto column = static_cast<int>(i) % grid.columns;
    const size_t row = i / static_cast<size_t>(grid.columns);
    if (column == 0 && i > 0) top += (grid.heights[row - 1] + kGap) * per_mm;
    const QRectF cell(area.left() + column * (grid.width + kGap) * per_mm, top, grid.width * per_mm, grid.heights[row] * per_mm);
    if (head > 0) paint_head(painter, QRectF(cell.topLeft(), QSizeF(cell.width(), head)), page, i, per_mm);
    Figure panel = panel_of(page, i, grid.width);
    panel.title.clear();
    if (has_data(panel))
      paintFigure(painter, cell.adjusted(0, head, 0, 0), panel, style);
    else
      paint_emptiness(painter, cell.adjusted(0, head, 0, 0), page, panel, per_mm);
  }
}

}  // namespace saccade::ui

#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

enum class LegendPlace { above, direct, none };

/// How a page for a paper looks, whatever it shows.
struct PageStyle {
  double width_mm = 140, panel_height_mm = 75;  ///< of the page, and of a row of panels; rows grow where a legend needs room
  int64_t columns = 1;                          ///< of panels
  std::string font = "Liberation Sans";
  double font_points = 9, line_points = 1.5;
  LegendPlace legend = LegendPlace::above;
  std::string colour_map = "viridis";
  bool letters = true;  ///< (a), (b) … where there are several panels
  int64_t dpi = 300;    ///< of PNG
  bool operator==(const PageStyle&) const = default;
};

/// Rows of texts, as papers print them.
struct PageTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes = {};
  std::string caption = {};  ///< in LaTeX, in place of the page's; empty: the page's
};

/// Figures on one page of a paper, or tables: data and looks, no pixels.
struct FigurePage {
  std::string id;  ///< file name without extension
  std::string title;
  PageStyle style = {};
  std::vector<Figure> panels = {};
  std::vector<PageTable> tables = {};
  std::string caption = {};  ///< what is shown, of which runs, seeds and tokens, made by what
  std::vector<std::string> provenance = {};
};

/// A size that a journal or conference asks for, with the type that stands beside it well.
struct PaperSize {
  std::string id, name;  ///< "icml-two", "ICML, two columns"
  double width_mm = 0, font_points = 0, line_points = 0;
  std::string font;
};
const std::vector<PaperSize>& paper_sizes();
/// Names of colour maps that are perceptually even.
const std::vector<std::string>& colour_maps();
/// Families that PDF embeds and that are usually there; the first is the default.
const std::vector<std::string>& paper_fonts();

nlohmann::json to_json(const FigurePage& page);
/// Throws DataError.
FigurePage page_from_json(const nlohmann::json& object);
nlohmann::json to_json(const PageStyle& style);

/// Tidy: a value a line, "panel,curve,x_title,y_title,x,y,low,high"; of tables their rows.
std::string to_csv(const FigurePage& page);
/// \includegraphics in a figure with its caption, or the tables.
std::string to_latex(const FigurePage& page);
/// A table of LaTeX; `comments` stand before it.
std::string latex_table(const PageTable& table, const std::vector<std::string>& comments = {});

}  // namespace saccade

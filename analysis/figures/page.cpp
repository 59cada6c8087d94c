#include "analysis/figures/page.h"

#include <algorithm>
#include <cmath>

#include "analysis/figures/csv_text.h"
#include "kernels/engine/error.h"
#include "models/replaced.h"

namespace saccade {

using Json = nlohmann::json;

namespace {

const char* const kLegends[] = {"above", "direct", "none"};

std::string latex_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (std::string("&%$#_{}").find(c) != std::string::npos)
      safe += std::string("\\") + c;
    else if (c == '~' || c == '^' || c == '\\')
      safe += c == '~' ? "\\textasciitilde{}" : c == '^' ? "\\textasciicircum{}" : "\\textbackslash{}";
    else
      safe += c;
  }
  for (const auto& [from, to] : {std::pair("±", "$\\pm$"), std::pair("–", "--"), std::pair("−", "$-$"), std::pair("×", "$\\times$")})
    safe = replaced(safe, from, to);
  return safe;
}

std::string latex_line(const std::vector<std::string>& cells) {
  std::string all;
  for (size_t i = 0; i < cells.size(); ++i) all += (i > 0 ? " & " : "") + latex_text(cells[i]);
  return all + " \\\\\n";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + csv_field(cells[i]);
  return line + "\n";
}

std::string name_or_number(const AxisRecipe& axis, int64_t at) {
  return static_cast<size_t>(at) < axis.names.size() ? axis.names[static_cast<size_t>(at)] : std::to_string(at);
}

/// The lines of one panel's curves.
std::string panel_csv(const Figure& figure, const std::string& panel) {
  std::string csv;
  for (const Curve& curve : figure.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      const bool band = i < curve.low.size() && i < curve.high.size();
      csv += csv_line({panel, curve.label, title_with_names(figure.x), title_with_names(figure.y), csv_number(curve.x[i]),
                       csv_number(curve.y[i]), band ? csv_number(curve.low[i]) : "", band ? csv_number(curve.high[i]) : ""});
    }
  if (!figure.map) return csv;
  const HeatMap& map = *figure.map;
  for (int64_t r = 0; r < map.rows; ++r)
    for (int64_t c = 0; c < map.columns; ++c)
      csv += csv_line({panel, figure.y.title + " " + name_or_number(figure.y, r), figure.x.title, map.value_title,
                       name_or_number(figure.x, c), csv_number(map.values[static_cast<size_t>(r * map.columns + c)]), "", ""});
  return csv;
}

}  // namespace

const std::vector<PaperSize>& paper_sizes() {
  static const std::vector<PaperSize> sizes{{"neurips-half", "NeurIPS, half of the text", 67, 8, 1.2, "Liberation Serif"},
                                            {"neurips", "NeurIPS, width of the text", 139.7, 9, 1.5, "Liberation Serif"},
                                            {"icml-one", "ICML, one column", 82.5, 8, 1.2, "Liberation Serif"},
                                            {"icml-two", "ICML, two columns", 171.4, 8, 1.4, "Liberation Serif"},
                                            {"acl-one", "ACL, one column", 77, 8, 1.2, "Liberation Serif"},
                                            {"acl-two", "ACL, two columns", 160, 8, 1.4, "Liberation Serif"},
                                            {"nature-one", "Nature, one column", 89, 7, 1, "Liberation Sans"},
                                            {"nature-two", "Nature, two columns", 183, 7, 1.2, "Liberation Sans"}};
  return sizes;
}

const std::vector<std::string>& colour_maps() {
  static const std::vector<std::string> maps{"viridis", "cividis", "magma", "grey"};
  return maps;
}

const std::vector<std::string>& paper_fonts() {
  static const std::vector<std::string> fonts{"Liberation Sans", "Liberation Serif", "DejaVu Sans", "DejaVu Serif"};
  return fonts;
}

Json to_json(const PageStyle& style) {
  return {{"width_mm", style.width_mm},
          {"panel_height_mm", style.panel_height_mm},
          {"columns", style.columns},
          {"font", style.font},
          {"font_points", style.font_points},
          {"line_points", style.line_points},
          {"legend", kLegends[static_cast<size_t>(style.legend)]},
          {"colour_map", style.colour_map},
          {"letters", style.letters},
          {"dpi", style.dpi}};
}

Json to_json(const FigurePage& page) {
  Json object{{"id", page.id},           {"title", page.title},     {"style", to_json(page.style)}, {"panels", Json::array()},
              {"tables", Json::array()}, {"caption", page.caption}, {"provenance", page.provenance}};
  for (const Figure& panel : page.panels) object["panels"].push_back(to_json(panel));
  for (const PageTable& table : page.tables)
    object["tables"].push_back(
        {{"title", table.title}, {"header", table.header}, {"rows", table.rows}, {"notes", table.notes}, {"caption", table.caption}});
  return object;
}

FigurePage page_from_json(const Json& object) try {
  FigurePage page;
  page.id = object.at("id"), page.title = object.at("title");
  const Json& style = object.at("style");
  const auto legend = std::find(std::begin(kLegends), std::end(kLegends), style.at("legend").get<std::string>());
  if (legend == std::end(kLegends)) throw DataError("a page's legend is " + style.at("legend").dump());
  page.style = {.width_mm = style.at("width_mm"),
                .panel_height_mm = style.at("panel_height_mm"),
                .columns = style.at("columns"),
                .font = style.at("font"),
                .font_points = style.at("font_points"),
                .line_points = style.at("line_points"),
                .legend = static_cast<LegendPlace>(legend - std::begin(kLegends)),
                .colour_map = style.at("colour_map"),
                .letters = style.at("letters"),
                .dpi = style.at("dpi")};
  for (const Json& panel : object.at("panels")) page.panels.push_back(figure_from_json(panel));
  for (const Json& table : object.at("tables"))
    page.tables.push_back(
        {table.at("title"), table.at("header"), table.at("rows"), table.at("notes"), table.value("caption", std::string())});
  page.caption = object.at("caption"), page.provenance = object.at("provenance");
  return page;
} catch (const Json::exception& error) {
  throw DataError(std::string("this JSON is no page: ") + error.what());
}

std::string to_csv(const FigurePage& page) {
  std::string csv;
  for (const PageTable& table : page.tables) {
    csv += csv_line(table.header);
    for (const auto& row : table.rows) csv += csv_line(row);
  }
  if (page.panels.empty()) return csv;
  csv += "panel,curve,x_title,y_title,x,y,low,high\n";
  for (size_t i = 0; i < page.panels.size(); ++i) csv += panel_csv(page.panels[i], std::string(1, static_cast<char>('a' + i)));
  return csv;
}

std::string latex_table(const PageTable& table, const std::vector<std::string>& comments) {
  std::string text = "% " + replaced(table.title, "\n", " ") + "\n";
  for (const std::string& comment : comments) text += "% " + replaced(comment, "\n", " ") + "\n";
  text += "\\begin{tabular}{l" + std::string(table.header.empty() ? 0 : table.header.size() - 1, 'r') + "}\n\\hline\n";
  text += latex_line(table.header) + "\\hline\n";
  for (const auto& row : table.rows) text += latex_line(row);
  text += "\\hline\n\\end{tabular}\n";
  for (const std::string& note : table.notes) text += "\\par\\smallskip{\\footnotesize " + latex_text(note) + "}\n";
  return text;
}

std::string to_latex(const FigurePage& page) {
  std::string text;
  for (const std::string& line : page.provenance) text += "% " + replaced(line, "\n", " ") + "\n";
  for (size_t i = 0; i < page.tables.size(); ++i) {
    const PageTable& table = page.tables[i];
    const std::string label = page.id + (i > 0 ? "-" + std::to_string(i + 1) : "");
    text += "\\begin{table}[t]\n\\centering\n" + latex_table(table) + "\\caption{" +
            latex_text(table.caption.empty() ? page.caption : table.caption) + "}\n\\label{tab:" + label + "}\n\\end{table}\n";
  }
  if (page.panels.empty()) return text;
  return text + "\\begin{figure}[t]\n\\centering\n\\includegraphics[width=" + csv_number(page.style.width_mm) + "mm]{" + page.id +
         "}\n\\caption{" + latex_text(page.caption) + "}\n\\label{fig:" + page.id + "}\n\\end{figure}\n";
}

}  // namespace saccade

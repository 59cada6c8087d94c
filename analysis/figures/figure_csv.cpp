#include <algorithm>
#include <array>
#include <set>

#include "analysis/figures/csv_text.h"
#include "analysis/figures/figure.h"

namespace saccade {
namespace {

/// Of a reduced map: where every block lies, and the value that stands for it.
std::string blocks_csv(const HeatMap& map) {
  std::string csv = "first_row,rows,first_column,columns,value\n";
  for (int64_t r = 0; r < map.rows; ++r)
    for (int64_t c = 0; c < map.columns; ++c)
      csv += std::to_string(static_cast<int64_t>(map.row_extent[0]) + r * map.block[0]) + "," + std::to_string(map.block[0]) + "," +
             std::to_string(static_cast<int64_t>(map.column_extent[0]) + c * map.block[1]) + "," + std::to_string(map.block[1]) + "," +
             csv_number(map.values[static_cast<size_t>(r * map.columns + c)]) + "\n";
  return csv;
}

std::string name_at(const std::vector<std::string>& names, int64_t at) {
  return static_cast<size_t>(at) < names.size() ? csv_field(names[static_cast<size_t>(at)]) : "";
}

std::string map_csv(const Figure& figure) {
  const HeatMap& map = *figure.map;
  const std::vector<std::string>&rows = map.row_names.empty() ? figure.y.names : map.row_names, &columns = figure.x.names;
  if (map.cells[0] > 0) return blocks_csv(map);
  const std::set<std::array<int64_t, 2>> marked(map.marked.begin(), map.marked.end());
  std::string csv = marked.empty() ? "row,column,value" : "row,column,value,marked";
  const std::set<std::array<int64_t, 2>> known(map.known.begin(), map.known.end());
  if (!known.empty()) csv += ",known";
  if (!rows.empty()) csv += ",row_name";
  if (!columns.empty()) csv += ",column_name";
  if (!map.strip.empty()) csv += "," + csv_field(map.strip_title);
  csv += "\n";
  for (int64_t r = 0; r < map.rows; ++r)
    for (int64_t c = 0; c < map.columns; ++c) {
      csv += std::to_string(r) + "," + std::to_string(c) + "," + csv_number(map.values[static_cast<size_t>(r * map.columns + c)]);
      if (!marked.empty()) csv += marked.contains({r, c}) ? ",1" : ",0";
      if (!known.empty()) csv += known.contains({r, c}) ? ",1" : ",0";
      if (!rows.empty()) csv += "," + name_at(rows, r);
      if (!columns.empty()) csv += "," + name_at(columns, c);
      if (!map.strip.empty()) csv += "," + csv_number(map.strip[static_cast<size_t>(r)]);
      csv += "\n";
    }
  return csv;
}

}  // namespace

std::string title_with_names(const AxisRecipe& axis) {
  std::string text = axis.title + (axis.title.empty() || axis.names.empty() ? "" : ":");
  for (size_t i = 0; i < axis.names.size(); ++i)
    text += (i > 0 ? ", " : text.empty() ? "" : " ") + std::to_string(i + 1) + " " + axis.names[i];
  return text;
}

std::string to_csv(const Figure& figure) {
  if (figure.map) return map_csv(figure);
  const bool bands = std::any_of(figure.curves.begin(), figure.curves.end(), [](const Curve& curve) { return !curve.low.empty(); });
  const bool notes = std::any_of(figure.curves.begin(), figure.curves.end(), [](const Curve& curve) { return !curve.note.empty(); });
  std::string csv = "curve," + csv_field(title_with_names(figure.x)) + "," + csv_field(title_with_names(figure.y)) +
                    (bands ? ",low,high" : "") + (notes ? ",note\n" : "\n");
  for (const Curve& curve : figure.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      csv += csv_field(curve.label) + "," + csv_number(curve.x[i]) + "," + csv_number(curve.y[i]);
      if (bands) csv += i < curve.low.size() ? "," + csv_number(curve.low[i]) + "," + csv_number(curve.high[i]) : ",,";
      if (notes) csv += "," + csv_field(curve.note);
      csv += "\n";
    }
  return csv;
}

}  // namespace saccade

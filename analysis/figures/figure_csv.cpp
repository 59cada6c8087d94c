#include <algorithm>
#include <array>
#include <set>

#include "analysis/figures/csv_text.h"
#include "analysis/figures/figure.h"

namespace saccade {
namespace {

std::string map_csv(const HeatMap& map) {
  const std::set<std::array<int64_t, 2>> marked(map.marked.begin(), map.marked.end());
  std::string csv = marked.empty() ? "row,column,value" : "row,column,value,marked";
  csv += map.row_names.empty() ? "\n" : ",row_name\n";
  for (int64_t r = 0; r < map.rows; ++r)
    for (int64_t c = 0; c < map.columns; ++c) {
      csv += std::to_string(r) + "," + std::to_string(c) + "," + csv_number(map.values[static_cast<size_t>(r * map.columns + c)]);
      if (!marked.empty()) csv += marked.contains({r, c}) ? ",1" : ",0";
      if (!map.row_names.empty())
        csv += "," + (static_cast<size_t>(r) < map.row_names.size() ? csv_field(map.row_names[static_cast<size_t>(r)]) : "");
      csv += "\n";
    }
  return csv;
}

}  // namespace

std::string to_csv(const Figure& figure) {
  if (figure.map) return map_csv(*figure.map);
  const bool bands = std::any_of(figure.curves.begin(), figure.curves.end(), [](const Curve& curve) { return !curve.low.empty(); });
  std::string csv = "curve," + csv_field(figure.x.title) + "," + csv_field(figure.y.title) + (bands ? ",low,high\n" : "\n");
  for (const Curve& curve : figure.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      csv += csv_field(curve.label) + "," + csv_number(curve.x[i]) + "," + csv_number(curve.y[i]);
      if (bands) csv += i < curve.low.size() ? "," + csv_number(curve.low[i]) + "," + csv_number(curve.high[i]) : ",,";
      csv += "\n";
    }
  return csv;
}

}  // namespace saccade

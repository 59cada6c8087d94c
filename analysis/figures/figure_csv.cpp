#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "analysis/figures/figure.h"

namespace saccade {
namespace {

/// The shortest text that reads back as the same number, whatever the locale.
template <class T>
std::string number(T value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string map_csv(const HeatMap& map) {
  const std::set<std::array<int64_t, 2>> marked(map.marked.begin(), map.marked.end());
  std::string csv = marked.empty() ? "row,column,value" : "row,column,value,marked";
  csv += map.row_names.empty() ? "\n" : ",row_name\n";
  for (int64_t r = 0; r < map.rows; ++r)
    for (int64_t c = 0; c < map.columns; ++c) {
      csv += std::to_string(r) + "," + std::to_string(c) + "," + number(map.values[static_cast<size_t>(r * map.columns + c)]);
      if (!marked.empty()) csv += marked.contains({r, c}) ? ",1" : ",0";
      if (!map.row_names.empty())
        csv += "," + (static_cast<size_t>(r) < map.row_names.size() ? quoted(map.row_names[static_cast<size_t>(r)]) : "");
      csv += "\n";
    }
  return csv;
}

}  // namespace

std::string to_csv(const Figure& figure) {
  if (figure.map) return map_csv(*figure.map);
  const bool bands = std::any_of(figure.curves.begin(), figure.curves.end(), [](const Curve& curve) { return !curve.low.empty(); });
  std::string csv = "curve," + quoted(figure.x.title) + "," + quoted(figure.y.title) + (bands ? ",low,high\n" : "\n");
  for (const Curve& curve : figure.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
      csv += quoted(curve.label) + "," + number(curve.x[i]) + "," + number(curve.y[i]);
      if (bands) csv += i < curve.low.size() ? "," + number(curve.low[i]) + "," + number(curve.high[i]) : ",,";
      csv += "\n";
    }
  return csv;
}

}  // namespace saccade

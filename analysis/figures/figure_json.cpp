#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/figures/figure.h"
#include "analysis/runs/record_json.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 4> kDashNames = {"solid", "dash", "dot", "dash_dot"};
constexpr std::array<const char*, 7> kMarkerNames = {"none", "circle", "square", "triangle", "diamond", "wedge", "cross"};

template <class Enum, size_t N>
Enum named(const std::array<const char*, N>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw DataError("\"" + name + "\" is no line style of a figure");
  return static_cast<Enum>(at - names.begin());
}

template <class T>
json numbers(const std::vector<T>& values) {
  json list = json::array();
  for (const T value : values) list.push_back(std::isfinite(value) ? json(value) : json(json_number(value)));
  return list;
}

template <class T>
std::vector<T> numbers_from(const json& list) {
  std::vector<T> values;
  for (const json& value : list) values.push_back(value.is_number() ? value.get<T>() : static_cast<T>(number_from(Record(value))));
  return values;
}

json axis_json(const AxisRecipe& axis) {
  json object{{"title", axis.title},
              {"logarithmic", axis.logarithmic},
              {"reversed", axis.reversed},
              {"range", axis.range ? json(*axis.range) : json()}};
  if (axis.linear_within > 0) object["linear_within"] = axis.linear_within;
  if (!axis.names.empty()) object["names"] = axis.names;
  return object;
}

AxisRecipe axis_from(const json& object) {
  AxisRecipe axis{object.at("title").get<std::string>(), object.at("logarithmic").get<bool>(), object.at("reversed").get<bool>(), {}};
  axis.linear_within = object.value("linear_within", 0.0);
  axis.names = object.value("names", axis.names);
  if (!object.at("range").is_null()) axis.range = object.at("range").get<std::array<double, 2>>();
  return axis;
}

json curve_json(const Curve& curve) {
  json object{{"label", curve.label},
              {"x", numbers(curve.x.values())},
              {"y", numbers(curve.y.values())},
              {"colour", {curve.colour.r, curve.colour.g, curve.colour.b}},
              {"dash", kDashNames[static_cast<size_t>(curve.dash)]},
              {"marker", kMarkerNames[static_cast<size_t>(curve.marker)]},
              {"width", curve.width},
              {"in_legend", curve.in_legend},
              {"sparse", curve.sparse}};
  if (!curve.note.empty()) object["note"] = curve.note;
  if (!curve.low.empty()) object["band"] = {numbers(curve.low.values()), numbers(curve.high.values())};
  if (curve.bars) object["bars"] = *curve.bars;
  return object;
}

Curve curve_from(const json& object) {
  const auto rgb = object.at("colour").get<std::array<uint8_t, 3>>();
  Curve curve{object.at("label").get<std::string>(),
              numbers_from<double>(object.at("x")),
              numbers_from<double>(object.at("y")),
              {rgb[0], rgb[1], rgb[2]},
              named<Dash>(kDashNames, object.at("dash").get<std::string>()),
              named<Marker>(kMarkerNames, object.at("marker").get<std::string>()),
              object.at("width").get<double>(),
              object.at("in_legend").get<bool>(),
              object.at("sparse").get<bool>()};
  curve.note = object.value("note", curve.note);
  if (const auto band = object.find("band"); band != object.end())
    curve.low = numbers_from<double>(band->at(0)), curve.high = numbers_from<double>(band->at(1));
  if (const auto bars = object.find("bars"); bars != object.end()) curve.bars = bars->get<double>();
  return curve;
}

json map_json(const HeatMap& map) {
  json object{{"rows", map.rows},
              {"columns", map.columns},
              {"values", numbers(map.values)},
              {"range", map.range},
              {"logarithmic", map.logarithmic},
              {"diverging", map.diverging},
              {"value_title", map.value_title},
              {"marked", map.marked},
              {"row_extent", map.row_extent},
              {"column_extent", map.column_extent},
              {"top_down", map.top_down}};
  if (!map.row_names.empty()) object["row_names"] = map.row_names;
  if (map.colours != HeatMap{}.colours) object["colours"] = map.colours;
  if (!map.known.empty()) object["known"] = map.known;
  if (map.cells[0] > 0) object["cells"] = map.cells, object["block"] = map.block;
  if (!map.strip.empty()) object["strip"] = {{"title", map.strip_title}, {"values", numbers(map.strip)}, {"row", map.strip_row}};
  return object;
}

HeatMap map_from(const json& object) {
  HeatMap map{object.at("rows").get<int64_t>(),
              object.at("columns").get<int64_t>(),
              numbers_from<float>(object.at("values")),
              object.at("range").get<std::array<double, 2>>(),
              object.at("logarithmic").get<bool>(),
              object.at("diverging").get<bool>(),
              object.at("value_title").get<std::string>(),
              object.at("marked").get<std::vector<std::array<int64_t, 2>>>(),
              object.at("row_extent").get<std::array<double, 2>>(),
              object.at("column_extent").get<std::array<double, 2>>(),
              object.at("top_down").get<bool>(),
              object.value("colours", HeatMap{}.colours),
              object.value("row_names", std::vector<std::string>())};
  map.known = object.value("known", map.known);
  map.cells = object.value("cells", map.cells);
  map.block = object.value("block", map.block);
  if (const auto strip = object.find("strip"); strip != object.end()) {
    map.strip_title = strip->at("title").get<std::string>();
    map.strip = numbers_from<float>(strip->at("values"));
    map.strip_row = strip->at("row").get<int64_t>();
    if (static_cast<int64_t>(map.strip.size()) != (map.cells[0] > 0 ? map.cells[0] : map.rows))
      throw DataError("the strip beside a figure's map has " + std::to_string(map.strip.size()) + " values for " +
                      std::to_string(map.rows) + " rows");
  }
  if (map.rows < 0 || map.columns < 0 || map.rows * map.columns != static_cast<int64_t>(map.values.size()))
    throw DataError("a figure's map has " + std::to_string(map.values.size()) + " values for " + std::to_string(map.rows) + " × " +
                    std::to_string(map.columns) + " cells");
  return map;
}

}  // namespace

json to_json(const Figure& figure) {
  json object{{"id", figure.id},
              {"title", figure.title},
              {"x", axis_json(figure.x)},
              {"y", axis_json(figure.y)},
              {"curves", json::array()},
              {"map", figure.map ? map_json(*figure.map) : json()},
              {"identity_line", figure.identity_line},
              {"vertical_line", figure.vertical_line ? json(*figure.vertical_line) : json()},
              {"vertical_label", figure.vertical_label},
              {"provenance", figure.provenance},
              {"width_mm", figure.width_mm},
              {"height_mm", figure.height_mm}};
  if (!figure.notes.empty()) object["notes"] = figure.notes;
  for (const Curve& curve : figure.curves) object["curves"].push_back(curve_json(curve));
  return object;
}

Figure figure_from_json(const json& object) try {
  Figure figure{.id = object.at("id").get<std::string>(),
                .title = object.at("title").get<std::string>(),
                .x = axis_from(object.at("x")),
                .y = axis_from(object.at("y"))};
  for (const json& curve : object.at("curves")) figure.curves.push_back(curve_from(curve));
  if (!object.at("map").is_null()) figure.map = map_from(object.at("map"));
  figure.identity_line = object.at("identity_line").get<bool>();
  if (!object.at("vertical_line").is_null()) figure.vertical_line = object.at("vertical_line").get<double>();
  figure.vertical_label = object.at("vertical_label").get<std::string>();
  figure.notes = object.value("notes", figure.notes);
  figure.provenance = object.at("provenance").get<std::vector<std::string>>();
  figure.width_mm = object.at("width_mm").get<double>();
  figure.height_mm = object.at("height_mm").get<double>();
  return figure;
} catch (const json::exception& error) {
  throw DataError(std::string("this JSON is no figure: ") + error.what());
}

}  // namespace saccade

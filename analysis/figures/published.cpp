#include "analysis/figures/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "analysis/figures/palette.h"
#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/resources.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kPublished = "published (";

PublishedTable::Row row_from(const Json& object, const PublishedTable& table, const std::string& architecture) {
  PublishedTable::Row row{object.at("name"),
                          object.value("curve", std::string()),
                          object.value("architecture", architecture),
                          object.value("settings", std::map<std::string, double>()),
                          {}};
  for (const Json& value : object.at("values")) row.values.push_back(value.is_null() ? kNothing : value.get<double>());
  if (row.values.size() != table.columns.size())
    throw DataError("row \"" + row.name + "\" has " + std::to_string(row.values.size()) + " values for " +
                    std::to_string(table.columns.size()) + " columns");
  return row;
}

fs::path published_file(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json") || name_or_file.find('/') != std::string::npos) return name_or_file;
  const std::vector<std::string> names = published_tables();
  if (std::find(names.begin(), names.end(), name_or_file) == names.end())
    throw UsageError("there is no published table \"" + name_or_file + "\"" + did_you_mean(name_or_file, names));
  return resource_folder() / "published" / (name_or_file + ".json");
}

/// A column of a row, or a setting; NaN where it has neither.
double number_of(const PublishedTable& table, const PublishedTable::Row& row, const std::string& name) {
  if (const auto setting = row.settings.find(name); setting != row.settings.end()) return setting->second;
  const auto column = std::find(table.columns.begin(), table.columns.end(), name);
  return column == table.columns.end() ? kNothing : row.values[static_cast<size_t>(column - table.columns.begin())];
}

std::string label_of(const PublishedTable& table, const std::string& name) {
  return (name.empty() ? "" : name + ", ") + kPublished + table.source + ")";
}

/// Adds hollow markers, one curve each and thus never joined; each look stands in the legend once.
class HollowMarkers {
 public:
  HollowMarkers(Figure& figure, const PublishedTable& table) : figure_(figure), table_(table) {}

  void add(const PublishedTable::Row& row, const std::string& name, double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const std::string label = label_of(table_, name);
    const auto [look, is_new] = looks_.try_emplace(label);
    if (is_new) look->second = look_of(row.architecture);
    figure_.curves.push_back({.label = label,
                              .x = {x},
                              .y = {y},
                              .colour = look->second.colour,
                              .marker = look->second.marker,
                              .in_legend = is_new,
                              .sparse = true});
  }

 private:
  /// Several of one architecture differ in shade and in shape: rings of two shades are hard to tell apart.
  VariantLook look_of(const std::string& architecture) {
    constexpr std::array kShapes{Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::wedge};
    const size_t variant = variants_[architecture]++;
    const Colour colour = architecture.empty() ? Colour{110, 110, 110} : variant_look(architecture, variant).colour;
    return {colour, kShapes[variant % kShapes.size()]};
  }

  Figure& figure_;
  const PublishedTable& table_;
  std::map<std::string, VariantLook> looks_;
  std::map<std::string, size_t> variants_;
};

/// As papers print them: two digits behind the point, more where there are more.
std::string printed(double value) {
  if (!std::isfinite(value)) return "–";
  std::array<char, 32> text{};
  const bool two = std::abs(value * 100 - std::round(value * 100)) < 1e-6;
  std::snprintf(text.data(), text.size(), two ? "%.2f" : "%.6g", value);
  return text.data();
}

}  // namespace

std::vector<std::string> published_tables() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(resource_folder() / "published", error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

PublishedTable parse_published(const std::string& text, const std::string& origin) try {
  const Json object = parse_json_or_discard(text);
  PublishedTable table{object.at("source"), object.at("title"), object.value("note", std::string()), object.at("columns"), {}};
  for (const Json& row : object.at("rows")) table.rows.push_back(row_from(row, table, object.value("architecture", std::string())));
  return table;
} catch (const Json::exception& error) {
  throw DataError(origin + " is no published table: " + error.what());
} catch (const DataError& error) {
  throw DataError(origin + ": " + error.what());
}

PublishedTable load_published(const std::string& name_or_file, const std::vector<std::string>& rows) {
  const fs::path file = published_file(name_or_file);
  PublishedTable table = parse_published(read_text(file), file.string());
  std::vector<std::string> names;
  for (const PublishedTable::Row& row : table.rows) names.push_back(row.name);
  for (const std::string& wanted : rows)
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      throw UsageError(name_or_file + " has no row \"" + wanted + "\"" + did_you_mean(wanted, names));
  if (!rows.empty())
    std::erase_if(table.rows, [&](const auto& row) { return std::find(rows.begin(), rows.end(), row.name) == rows.end(); });
  return table;
}

void add_published_numbers(Figure& figure, const PublishedTable& table, const std::string& value, const std::string& against) {
  HollowMarkers markers(figure, table);
  for (const PublishedTable::Row& row : table.rows)
    markers.add(row, row.curve, number_of(table, row, against), number_of(table, row, value));
}

void add_published_scores(Figure& figure, const PublishedTable& table) {
  HollowMarkers markers(figure, table);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const PublishedTable::Row& row = table.rows[r];
    const double beside = 0.3 + 0.18 * (static_cast<double>(r) + 0.5) / static_cast<double>(table.rows.size());  // right of the runs' dots
    for (size_t at = 0; at < figure.x.names.size(); ++at)
      markers.add(row, row.name, static_cast<double>(at + 1) + beside, number_of(table, row, figure.x.names[at]) / 100);
  }
}

PageTable published_page_table(const PublishedTable& table) {
  PageTable page{table.title + ", as published (" + table.source + ")", {"published"}, {}};
  page.header.insert(page.header.end(), table.columns.begin(), table.columns.end());
  for (const PublishedTable::Row& row : table.rows) {
    std::vector<std::string> cells{row.name};
    for (const double value : row.values) cells.push_back(printed(value));
    page.rows.push_back(std::move(cells));
  }
  page.caption = page.title + ".";
  page.notes.push_back("As printed in " + table.source + "." + (table.note.empty() ? "" : " " + table.note));
  return page;
}

bool is_published(const Curve& curve) { return curve.label.find(kPublished) != std::string::npos; }

}  // namespace saccade

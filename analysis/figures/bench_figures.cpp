#include "analysis/figures/bench_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade {
namespace {

using Point = BenchedModel::Point;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool over_batch(const std::string& quantity) { return quantity == "decoding-speed" || quantity == "whole-speed"; }
bool is_time(const std::string& quantity) { return quantity == "first-token" || quantity == "token-time"; }

std::string quantity_title(const std::string& quantity) {
  static const std::map<std::string, std::string> titles{
      {"training-speed", "training (tokens/s)"}, {"first-token", "first token (s)"},        {"token-time", "time of a token (s)"},
      {"state-bytes", "state (bytes)"},          {"decoding-speed", "decoding (tokens/s)"}, {"whole-speed", "with prompts (tokens/s)"}};
  return titles.at(quantity);
}

/// "0.227 M"
std::string count_text(double value) {
  std::array<char, 32> text{};
  const bool millions = value >= 1e5;
  std::snprintf(text.data(), text.size(), "%.3g%s", millions ? value / 1e6 : value / 1e3, millions ? " M" : " k");
  return text.data();
}

/// What models are called: by title where those differ, else by name, and by device where there are several.
std::vector<std::string> labels_of(const std::vector<BenchedModel>& models) {
  std::set<std::string> devices;
  std::map<std::string, std::set<std::string>> names;
  for (const BenchedModel& model : models) devices.insert(model.device), names[model.title].insert(model.name);
  std::vector<std::string> labels;
  for (const BenchedModel& model : models)
    labels.push_back((names[model.title].size() > 1 ? model.name : model.title) + (devices.size() > 1 ? ", " + model.device : ""));
  return labels;
}

/// Of the same device, and with the name or title that is asked for.
const BenchedModel* reference_of(const std::vector<BenchedModel>& models, const BenchedModel& model, const std::string& relative) {
  for (const BenchedModel& each : models)
    if (each.device == model.device && (each.name == relative || each.title == relative)) return &each;
  return nullptr;
}

void require_reference(const std::vector<BenchedModel>& models, const std::string& relative) {
  std::vector<std::string> names;
  for (const BenchedModel& model : models) names.push_back(model.name), names.push_back(model.title);
  if (relative.empty() || models.empty() || std::find(names.begin(), names.end(), relative) != names.end()) return;
  throw UsageError("relative is \"" + relative + "\": nothing benched is called so" + did_you_mean(relative, names));
}

const Point* same_place(const BenchedModel& model, const Point& point) {
  for (const Point& each : model.points)
    if (each.quantity == point.quantity && each.length == point.length && each.batch == point.batch && each.refusal.empty()) return &each;
  return nullptr;
}

struct Value {
  double value = kNothing, low = kNothing, high = kNothing;
};

/// Of a point itself, or relative to the reference's median at the same place.
Value value_of(const std::vector<BenchedModel>& models, const BenchedModel& model, const Point& point, const std::string& relative) {
  if (!point.refusal.empty()) return {};
  if (relative.empty()) return {point.value, point.low, point.high};
  const BenchedModel* reference = reference_of(models, model, relative);
  const Point* there = reference ? same_place(*reference, point) : nullptr;
  if (!there) return {};
  if (is_time(point.quantity)) return {there->value / point.value, there->value / point.high, there->value / point.low};
  return {point.value / there->value, point.low / there->value, point.high / there->value};
}

/// Hues by title; where runs are drawn beside, models of their names look as they do, and no other one does.
std::vector<VariantLook> looks_of(const std::vector<BenchedModel>& models, const std::vector<std::string>& labels,
                                  const std::map<std::string, VariantLook>& beside) {
  std::vector<std::string> titles;
  std::vector<VariantLook> taken;
  for (const BenchedModel& model : models) titles.push_back(model.title);
  for (const auto& [name, look] : beside) taken.push_back(look);
  std::vector<VariantLook> looks = variant_looks(titles, taken);
  for (size_t m = 0; m < models.size(); ++m)
    if (const auto same = beside.find(labels[m]); same != beside.end()) looks[m] = same->second;
  return looks;
}

std::string place_text(const Point& point) {
  const std::string length = std::to_string(point.length) + " tokens";
  return over_batch(point.quantity) ? std::to_string(point.batch) + " prompts of " + length : length;
}

void add_point(Curve& curve, const Point& point, const Value& value) {
  curve.x.push_back(static_cast<double>(over_batch(point.quantity) ? point.batch : point.length));
  curve.y.push_back(value.value);
  if (point.quantity == "training-speed" || point.quantity == "first-token")
    curve.low.push_back(value.low), curve.high.push_back(value.high);
}

int64_t longest_prompt(const std::vector<BenchedModel>& models, const std::string& quantity) {
  int64_t longest = 0;
  for (const BenchedModel& model : models)
    for (const Point& point : model.points)
      if (point.quantity == quantity) longest = std::max(longest, point.length);
  return longest;
}

/// The model's points of the quantity; over the batch those behind prompts of one length.
std::vector<Point> points_of(const BenchedModel& model, const std::string& quantity, int64_t prompt) {
  std::vector<Point> points;
  std::copy_if(model.points.begin(), model.points.end(), std::back_inserter(points),
               [&](const Point& point) { return point.quantity == quantity && (!over_batch(quantity) || point.length == prompt); });
  return points;
}

/// "Nothing of GPT at 4096 and 8192 tokens: a sequence of 4096 tokens; the positions are trained for 2048." Empty: there is everything.
std::string refusals_of(const std::string& label, const std::vector<Point>& points) {
  std::vector<std::string> places;
  std::string reason;
  for (const Point& point : points)
    if (!point.refusal.empty()) {
      if (places.empty()) reason = point.refusal;
      places.push_back(std::to_string(over_batch(point.quantity) ? point.batch : point.length));
    }
  if (places.empty()) return {};
  std::string list;
  for (size_t i = 0; i < places.size(); ++i) list += (i == 0 ? "" : i + 1 < places.size() ? ", " : " and ") + places[i];
  const bool side_by_side = over_batch(points.front().quantity);
  return "Nothing of " + label + " at " + list + (side_by_side ? " sequences side by side: " : " tokens: ") + reason + ".";
}

}  // namespace

BenchFigure bench_figure(const std::vector<BenchedModel>& models, const std::string& quantity, const std::string& relative, int64_t prompt,
                         const std::map<std::string, VariantLook>& beside) {
  require_reference(models, relative);
  if (prompt == 0) prompt = longest_prompt(models, quantity);
  BenchFigure made;
  Figure& figure = made.figure;
  figure.id = quantity, figure.title = quantity_title(quantity);
  const std::string prompts = prompt > 0 ? ", prompts of " + std::to_string(prompt) : "";  // nothing is known of any: no file has them
  figure.x.title = over_batch(quantity) ? "sequences" + prompts : quantity == "training-speed" ? "sequence (tokens)" : "prompt (tokens)";
  figure.y.title =
      relative.empty() ? quantity_title(quantity) : (quantity == "state-bytes" ? "state, of " : "times as fast as ") + relative;
  const std::vector<std::string> labels = labels_of(models);
  const std::vector<VariantLook> looks = looks_of(models, labels, beside);
  for (size_t m = 0; m < models.size(); ++m) {
    const std::vector<Point> points = points_of(models[m], quantity, prompt);
    Curve curve{.label = labels[m], .x = {}, .y = {}, .colour = looks[m].colour, .marker = looks[m].marker};
    for (const Point& point : points) add_point(curve, point, value_of(models, models[m], point, relative));
    if (const std::string note = refusals_of(labels[m], points); !note.empty()) made.notes.push_back(note);
    if (std::any_of(curve.y.begin(), curve.y.end(), [](double y) { return std::isfinite(y); })) figure.curves.push_back(std::move(curve));
  }
  return made;
}

PageTable bench_table(const std::vector<BenchedModel>& models, const std::string& relative, const std::string& title) {
  require_reference(models, relative);
  PageTable table{!title.empty()     ? title
                  : relative.empty() ? "Tokens per second"
                                     : "Tokens per second, times those of " + relative,
                  {""},
                  {}};
  std::vector<Point> columns;
  for (const std::string& quantity : {std::string("training-speed"), std::string("decoding-speed"), std::string("whole-speed")})
    for (const BenchedModel& model : models)
      for (const Point& point : model.points) {
        const bool known = std::any_of(columns.begin(), columns.end(), [&](const Point& c) {
          return c.quantity == point.quantity && c.length == point.length && c.batch == point.batch;
        });
        if (point.quantity == quantity && !known) columns.push_back(point);
      }
  for (const Point& column : columns)
    table.header.push_back((column.quantity == "training-speed"   ? "training, "
                            : column.quantity == "decoding-speed" ? "decoding, "
                                                                  : "with prompts, ") +
                           place_text(column));
  const std::vector<std::string> labels = labels_of(models);
  for (size_t m = 0; m < models.size(); ++m) {
    std::vector<std::string> row{labels[m]};
    bool any = false;
    for (const Point& column : columns) {
      std::string cell = "–";
      for (const Point& point : models[m].points) {
        if (point.quantity != column.quantity || point.length != column.length || point.batch != column.batch) continue;
        any = true;
        const Value value = value_of(models, models[m], point, relative);
        std::array<char, 32> ratio{};
        std::snprintf(ratio.data(), ratio.size(), "%.2f×", value.value);
        if (std::isfinite(value.value)) cell = relative.empty() ? count_text(value.value) : ratio.data();
        if (point.refusal.empty()) continue;
        cell = "does not fit";
        if (point.quantity != "whole-speed") table.notes.push_back(labels[m] + " at " + place_text(point) + ": " + point.refusal + ".");
      }
      row.push_back(cell);
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

std::string bench_caption(const std::vector<BenchedModel>& models) {
  std::set<std::string> devices;
  for (const BenchedModel& model : models) devices.insert(model.device);
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : ", ") + device;
  return list.empty() ? ""
                      : "Measured on " + list + "; medians, bands from the slowest to the fastest repeat where a measurement was repeated.";
}

}  // namespace saccade

#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/run.h"
#include "models/json.h"

namespace saccade {

struct Colour {
  uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Colour&) const = default;
};
enum class Dash { solid, dash, dot, dash_dot };
enum class Marker { none, circle, square, triangle, diamond, wedge, cross };

/// A figure is data and a recipe, no pixels: the window, PDF, SVG, PNG and CSV are all made from it. A curve without points
/// stands in the legend only.
struct Curve {
  std::string label;
  Column x, y;  ///< NaN breaks the line
  Colour colour;
  Dash dash = Dash::solid;
  Marker marker = Marker::none;
  double width = 1.5;  ///< points
  bool in_legend = true;
  bool sparse = false;         ///< markers are hollow and stand at a few places only: they tell curves apart, not points
  Column low = {}, high = {};  ///< a band around y, as long as it; empty: none
  /// Bars at the points in place of a band, where nothing was measured between them: how far right of the points they stand, in points of
  /// paper, so that those of several curves can be told apart.
  std::optional<double> bars{};
  std::string note = {};  ///< what is to be known of it beside its name: "mid-schedule, one rate only"; in CSV and JSON
  bool operator==(const Curve&) const = default;
};
struct AxisRecipe {
  std::string title;  ///< with the unit: "loss (nats)"
  bool logarithmic = false, reversed = false;
  std::optional<std::array<double, 2>> range{};  ///< else from the data
  double linear_within = 0;          ///< above 0: a logarithm of both signs, log(1 + |v| / this), linear near zero; then not logarithmic
  std::vector<std::string> names{};  ///< what stands at 1, 2, …: tasks, or settings that are no even scale; empty: the axis has numbers
  bool operator==(const AxisRecipe&) const = default;
};
/// Where names do not fit on their axis, its title says them: "depth (%): 1 0–10, 2 50–60".
std::string title_with_names(const AxisRecipe& axis);
struct HeatMap {
  int64_t rows = 0, columns = 0;
  std::vector<float> values{};  ///< row-major; NaN is drawn as nothing
  std::array<double, 2> range{0, 1};
  bool logarithmic = false;                                     ///< colour scale
  bool diverging = false;                                       ///< centred map for differences
  std::string value_title{};                                    ///< "attention weight", "ln mass (nats)"
  std::vector<std::array<int64_t, 2>> marked{};                 ///< cells (row, column) with an outline: what was chosen
  std::array<double, 2> row_extent{0, 0}, column_extent{0, 0};  ///< axis values of the edges; equal: 0 … rows, 0 … columns
  bool top_down = true;                                         ///< row 0 at the top
  std::string colours{"viridis"};                               ///< colour_maps(); not of a diverging map
  std::vector<std::string> row_names{};                         ///< what rows are called beside their numbers; empty: nothing
  std::vector<float> strip{};                                   ///< a number a row, drawn as a bar from zero beside it; empty: none
  std::string strip_title{};                                    ///< "margin"
  int64_t strip_row = -1;                                       ///< whose bar is marked; −1: none
  std::vector<std::array<int64_t, 2>> known{};                  ///< cells with an outline of another colour: known answers
  /// A reduced picture of more cells, `rows` × `columns` blocks of `block` cells of the `cells` rows and columns that there are, between
  /// the extents; marks, strip and everything that is pointed at count cells. 0: every value is a cell.
  std::array<int64_t, 2> cells{0, 0}, block{1, 1};
};
struct Figure {
  std::string id;  ///< file name without extension: "ood-against-pretraining"
  std::string title;
  AxisRecipe x{}, y{};
  std::vector<Curve> curves{};
  std::optional<HeatMap> map{};
  bool identity_line = false;
  std::optional<double> vertical_line{};
  std::string vertical_label{};  ///< empty: the axis's title says what the line is, which is dashed and in no curve's colour then
  std::vector<std::string>
      notes{};  ///< sentences that stand below it in files, and in captions: where curves were read, how runs were tuned
  std::vector<std::string> provenance{};  ///< run ids, config hashes, code version: goes into the file's metadata
  double width_mm = 140, height_mm = 90;
};

enum class XAxis { step, tokens, flops, seconds };

/// What is recorded at every step is noisy; see smoothed(). `width` in units of the x axis.
struct Smoothing {
  enum class Kind { none, exponential, window };
  Kind kind = Kind::none;
  double width = 0;
  bool operator==(const Smoothing&) const = default;
};

/// What a band around a mean of seeds is half as wide as: the sample standard deviation, the standard error of the mean, or half of the
/// mean's 95 % interval (Student t).
enum class Spread { deviation, error, interval };
const char* to_string(Spread spread);  ///< "standard deviation", "standard error", "95 % interval"

/// One thing in a figure: a run, or the seeds of one setting, drawn as their mean with a band around it.
struct DrawnRuns {
  std::string label;
  Colour colour;
  Marker marker = Marker::circle;
  Dash dash = Dash::solid;
  std::vector<const Run*> seeds;
};
using DrawnSet = std::vector<DrawnRuns>;
using RunSet = std::vector<const Run*>;
/// Every run by itself. `among`: all runs that are to look different (run_looks()), when those are more than the runs of this figure.
DrawnSet each_run(const RunSet& runs, const RunSet& among = {});

struct CurveRecipe {
  XAxis x = XAxis::tokens;
  bool log_x = false, log_y = false;
  Smoothing smoothing{};
  Spread spread = Spread::deviation;
  bool each_domain = false;  ///< of losses: a curve for every OOD domain, told apart by dashes, in place of their mean
  /// Gives the values of a series of every step of one run, where others than the run's own are wanted: (x, y).
  std::function<std::pair<Column, Column>(const Run& run, const std::string& series)> values{};
};

/// Recipes. Runs must outlive the call only.
/// Training loss (thin) of the seeds in `training_of`, or of all when that is empty; validation loss, and mean OOD loss (with markers)
/// or that of every domain.
Figure loss_figure(const DrawnSet& drawn, const CurveRecipe& recipe, const RunSet& training_of = {});
Figure series_figure(const DrawnSet& drawn, const std::string& series_name, const CurveRecipe& recipe);
/// OOD loss minus in-domain validation loss, or divided by it.
Figure gap_figure(const DrawnSet& drawn, const CurveRecipe& recipe, bool ratio = false);
/// `domain` empty: the mean of all. Its notes say which curves have no ends of cooldown branches, so that all of their points lie in the
/// middle of a schedule, and how the runs of each label were tuned, where `tuning` is given.
Figure trajectory_figure(const DrawnSet& drawn, const std::string& domain, std::optional<double> at_loss,
                         const PretrainingLoss& pretraining = {}, const TuningOfRun& tuning = {});

/// The same with every run by itself.
Figure loss_figure(const RunSet& runs, XAxis x, bool log_x, bool log_y, const RunSet& among = {});
Figure trajectory_figure(const RunSet& runs, const std::string& domain = "", std::optional<double> at_loss = {}, const RunSet& among = {},
                         const PretrainingLoss& pretraining = {}, const TuningOfRun& tuning = {});
Figure series_figure(const RunSet& runs, const std::string& series_name, XAxis x, bool log_x, bool log_y, const RunSet& among = {});
/// A curve per run and layer; the first layers lightest.
Figure entropy_figure(const RunSet& runs, XAxis x, bool normalized, const RunSet& among = {});
/// Entropy (or another per-head statistic) as layers × heads. `layer_mixers`: of a hybrid stack (layer_mixers()).
Figure head_figure(const StatisticsRecord& record, const std::string& statistic, const std::vector<std::string>& layer_mixers = {});
/// The map of one layer and head of a capture; throws UsageError when it has none of that kind, layer or head, or the kind no figure.
///   weights, soft_weights   row: query position, column: source position
///   score          row: query position, column: chunk; the chosen chunks are marked, what is no candidate is NaN
///   maxsim         row: split that reads, column: earlier split; the chosen ones are marked (layer and head do not matter)
///   captured_mass, margin   row: head, column: query position
Figure capture_figure(const Capture& capture, MapKind kind, int64_t layer, int64_t head);

/// Of maps that are too large to be drawn cell by cell, and those of layers and heads alone (is_read_by_rows: weights, soft_weights,
/// score): the figure without values, rows of its values, and a range of colours from the least and greatest of them. Throw as
/// capture_figure.
struct MapPlace {
  MapKind kind = MapKind::weights;
  int64_t layer = 0, head = 0;
  bool operator==(const MapPlace&) const = default;
};
bool is_read_by_rows(MapKind kind);
Figure empty_capture_figure(const Capture& capture, const MapPlace& place);
std::vector<float> capture_rows(const Capture& capture, const MapPlace& place, int64_t first, int64_t count);
/// What the colours stand for: "weight", of a reduced picture "weight, greatest of 16 × 16".
std::string scale_title(const HeatMap& map);
/// `from_zero`: the range begins at zero, or is as far on both sides of it.
void set_range(HeatMap& map, std::array<double, 2> range, bool from_zero);

/// Gives axes the logarithm of both signs, over three powers of ten below the largest value.
void make_symmetric(Figure& figure, bool x, bool y);

/// A value a line: curve, x, y and the band where there is one; of maps row, column and value. Numbers in the C locale, full precision.
std::string to_csv(const Figure& figure);
nlohmann::json to_json(const Figure& figure);
Figure figure_from_json(const nlohmann::json& object);

}  // namespace saccade

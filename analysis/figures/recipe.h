#pragma once
#include <filesystem>
#include <functional>

#include "analysis/figures/number_figures.h"
#include "analysis/figures/page.h"

namespace saccade {

enum class AxisKind { linear, logarithmic, symmetric };

/// One panel: what is drawn of which runs.
struct PanelRecipe {
  std::string chart = "loss";  ///< panel_charts()
  std::string title;           ///< over the panel; empty: none
  std::string runs;            ///< narrows the recipe's, as RunFilter takes it
  XAxis x = XAxis::tokens;
  AxisKind x_scale = AxisKind::linear, y_scale = AxisKind::linear;
  std::optional<std::array<double, 2>> x_range{}, y_range{};
  std::string series;     ///< of chart series
  std::string domain;     ///< of charts trajectory and position; empty: the mean of all
  std::string statistic;  ///< of charts layers and heads; empty: entropy_normalized
  std::optional<double> at_loss{};
  std::string value = "ood";                       ///< of chart setting: the number up, see run_number()
  Fit fit = Fit::none;                             ///< of chart setting
  std::string against = "training.learning_rate";  ///< of chart setting: the number across, likewise; of scores: score_figures.h
  std::string task;                                ///< of scores: what the tasks' names begin with; empty: all
  std::vector<std::string> tasks;                  ///< of charts scores and score-dots: these alone, in this order; empty: as `task` says
  bool checkpoint_mean = false;                    ///< of the same two: means over all checkpoints scored; else the newest
  std::string rows = "depth";                      ///< of chart score-map: the number up
  Spread spread = Spread::deviation;               ///< of bands over seeds
  std::string published;                           ///< a table of a paper whose numbers are drawn too: load_published(); empty: none
  std::vector<std::string> published_rows;         ///< its rows of these names alone; empty: all
  std::string relative;                            ///< of charts of benchmarks: whose speed is 1; empty: speeds as they are
  int64_t prompt = 0;                              ///< of charts decoding-speed and whole-speed: tokens of prompts; 0: the longest
  std::string pretraining = "validation";          ///< of charts trajectory and table: parse_pretraining_loss()
  double window = PretrainingLoss{}.window;        ///< tokens, of pre-training loss "train"
  /// Of charts setting and table: the losses at the end are those that runs recorded, or of "test" those that their studies evaluated.
  std::string split = "validation";
  double smoothing = 0;  ///< reach of the exponential mean, in units of the x axis; 0: none
  bool operator==(const PanelRecipe&) const = default;
};

/// A figure of a paper as people keep it: which runs, which charts, which looks. JSON beside the runs; drawn anew from them at any time.
struct FigureRecipe {
  std::string name;   ///< of the file
  std::string title;  ///< begins the caption
  std::string source;
  std::string runs;                                       ///< RunFilter; empty: all
  std::vector<std::string> folders;                       ///< only runs whose folders have these names; empty: all
  std::vector<std::string> bench{};                       ///< files of `saccade bench --out`, or folders; empty: the folder "bench"
  std::vector<std::string> formats{"pdf", "csv", "tex"};  ///< what "export all" writes
  PageStyle style;
  std::vector<PanelRecipe> panels{PanelRecipe{}};
  /// Where relative paths of `bench` begin: above the folder `figures` that the recipe was read from. Is in no file, and no part of what a
  /// recipe is.
  std::filesystem::path home{};
  bool operator==(const FigureRecipe& other) const;
};

/// loss, trajectory, gap, series, layers, heads, setting, position, table, score-curve, score-map, score-dots, scores, held-back, length,
/// length-last, answers; of benchmarks bench_quantities() and speed-table.
const std::vector<std::string>& panel_charts();
/// Whether a chart shows files of `saccade bench` and no runs.
bool is_bench_chart(const std::string& chart);
/// Whether a chart is a table: of losses, scores or speeds.
bool is_table_chart(const std::string& chart);
/// Whether a chart draws numbers of published tables, or prints them beside its own.
bool shows_published(const std::string& chart);

/// Whether a panel shows a pre-training loss, or losses at the end that may be of the test split.
bool takes_pretraining(const PanelRecipe& panel);
bool takes_split(const PanelRecipe& panel);
/// Panels that show a pre-training loss are given this one, those with losses at the end this split. Throw UsageError where there is no
/// such panel.
void choose_pretraining(FigureRecipe& recipe, const std::string& kind, double window);
void choose_split(FigureRecipe& recipe, const std::string& split);

/// Throws UsageError "ORIGIN: /panels/0/chart is …".
FigureRecipe parse_recipe(const std::string& text, const std::string& origin, const std::string& name);
/// Throws DataError where there is no such file, UsageError.
FigureRecipe load_recipe(const std::filesystem::path& file);
nlohmann::json to_json(const FigureRecipe& recipe);
/// The file of a recipe that comes with the program (its name), or the path itself. Throws UsageError that suggests a name.
std::filesystem::path find_recipe(const std::string& name_or_file);
std::vector<std::string> shipped_recipes();

/// The page that a recipe makes of `runs`. `among`: all runs that colours tell apart. Panels without data stay, empty. The
/// caption says how the runs were tuned, where `tuning` is given. Throws UsageError where a panel asks for what no run has, or for a
/// pre-training loss that one of its runs does not record; DataError for files of benchmarks and evaluations that cannot be read.
FigurePage make_page(const FigureRecipe& recipe, const RunSet& runs, const RunSet& among = {}, const TuningOfRun& tuning = {});
/// Names of what has no point, cell or row to show, published numbers left aside: "panel 2 (trajectory)"; of all runs empty, the page is
/// none.
std::vector<std::string> empty_parts(const FigureRecipe& recipe, const FigurePage& page);
/// Those that the recipe's query takes.
RunSet runs_of(const FigureRecipe& recipe, const RunSet& runs);

}  // namespace saccade

// saccade export FIGURE RUN… --out FILE: the paper's figures, without a display.
#include <algorithm>
#include <array>
#include <set>

#include "analysis/figures/empty_panels.h"
#include "analysis/figures/recipe.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/files.h"
#include "analysis/runs/layers.h"
#include "analysis/studies/study_folder.h"
#include "app/cli/capture_option.h"
#include "app/cli/command.h"
#include "app/cli/render.h"
#include "app/cli/runs_option.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

struct Options {
  std::string recipe, figure, out, x = "tokens", domain, map, series, statistic = "entropy";
  std::vector<std::string> runs, bench;
  bool log_x = false, log_y = false, normalized = false;
  int64_t step = -1, sample = 0, layer = 0, head = 0;
  std::optional<double> at_loss;
  PretrainingOption pretraining;
  std::string split;
  bool says_pretraining = false;         ///< else a recipe has its own
  std::vector<double> x_range, y_range;  ///< two ends, or none: from the data
};

XAxis parse_x(const std::string& x) {
  if (x == "step") return XAxis::step;
  if (x == "tokens") return XAxis::tokens;
  if (x == "flops") return XAxis::flops;
  return XAxis::seconds;
}

MapKind parse_map(const std::string& name) {
  if (const auto kind = parse_map_kind(name)) return *kind;
  throw UsageError("--map " + name + did_you_mean(name, {"weights", "soft_weights", "score", "maxsim", "captured_mass", "margin"}));
}

const Run& single(const OpenedRuns& runs, const std::string& figure) {
  if (runs.runs.size() != 1)
    throw UsageError("the figure " + figure + " shows one run, " + std::to_string(runs.runs.size()) + " were given");
  return runs.runs.front();
}

Figure selection(const Options& o, const Run& run) {
  const Capture capture = open_capture(run, o.step, o.sample);
  return capture_figure(capture, o.map.empty() ? main_map(capture, o.layer) : parse_map(o.map), o.layer, o.head);
}

Figure heads(const Options& o, const Run& run) {
  if (!run.last_statistics()) throw DataError(run.info().directory.string() + " has no statistics yet; /training/probe_every says when");
  return head_figure(*run.last_statistics(), o.statistic, layer_mixers(run.info()));
}

/// UsageError with the names there are, when no run has the series.
void require_series(const OpenedRuns& runs, const std::string& name) {
  std::set<std::string> names;
  for (const Run& run : runs.runs)
    for (const Series& series : run.series()) names.insert(series.name);
  if (names.contains(name)) return;
  const std::vector<std::string> list(names.begin(), names.end());
  throw UsageError(name.empty() ? "the figure series needs --series; there are " + alternatives(list)
                                : "--series " + name + ": no run has it" + did_you_mean(name, list));
}

Figure make_figure(const Options& o, const OpenedRuns& runs) {
  const auto list = runs.pointers();
  if (o.figure == "selection") return selection(o, single(runs, o.figure));
  if (o.figure == "heads") return heads(o, single(runs, o.figure));
  if (o.figure == "loss") return loss_figure(list, parse_x(o.x), o.log_x, o.log_y);
  if (o.figure == "entropy") return entropy_figure(list, parse_x(o.x), o.normalized);
  if (o.figure == "trajectory") {
    require_domain(runs, o.domain);
    return trajectory_figure(list, o.domain, o.at_loss, {}, o.pretraining.chosen(runs), tuning_by_study());
  }
  require_series(runs, o.series);
  return series_figure(list, o.series, parse_x(o.x), o.log_x, o.log_y);
}

void set_range(AxisRecipe& axis, const std::vector<double>& ends, const std::string& option) {
  if (ends.empty()) return;
  if (!(ends[0] < ends[1])) throw UsageError(option + ": the first end is to be below the second");
  if (axis.logarithmic && !(ends[0] > 0)) throw UsageError(option + ": a logarithmic axis begins above 0");
  axis.range = std::array<double, 2>{ends[0], ends[1]};
}

/// Throws DataError where the page shows nothing at all, and warns of what is empty beside the rest.
void require_content(const FigureRecipe& recipe, const FigurePage& page, const std::string& name) {
  const std::vector<std::string> empty = empty_parts(recipe, page);
  const bool several = empty.size() > 1;
  const std::string words = "the recipe " + name + ": " + empty_words(recipe, page);
  if (empty.size() == recipe.panels.size()) throw DataError(words + "; nothing was written");
  if (!empty.empty()) warn("warning: " + words + (several ? "; they are empty" : "; it is empty"));
}

/// Of the recipe's own runs, or of those given.
int run_recipe(const Options& o) {
  const std::filesystem::path file = find_recipe(o.recipe);
  FigureRecipe recipe = load_recipe(file);
  if (o.says_pretraining) choose_pretraining(recipe, o.pretraining.kind, o.pretraining.window);
  if (!o.split.empty()) choose_split(recipe, o.split);
  for (const std::string& path : o.bench) recipe.bench.push_back(std::filesystem::absolute(path).string());
  std::vector<std::string> paths = o.runs;
  if (!o.figure.empty()) paths.insert(paths.begin(), o.figure);  // the first word names a run then
  const bool needs_runs =
      std::any_of(recipe.panels.begin(), recipe.panels.end(), [](const PanelRecipe& panel) { return !is_bench_chart(panel.chart); });
  if (paths.empty() && needs_runs) {
    const std::filesystem::path folder = std::filesystem::absolute(file).lexically_normal().parent_path();
    if (folder.filename() != "figures")
      throw UsageError("--recipe " + o.recipe + ": which runs? Only a recipe in the folder figures beside runs knows its own");
    const std::filesystem::path beside = folder.parent_path();
    paths.push_back((std::filesystem::exists(beside / "runs") ? beside / "runs" : beside).string());
  }
  std::error_code none;
  if (recipe.bench.empty() && !paths.empty() && std::filesystem::is_directory(std::filesystem::path(paths.front()) / "bench", none))
    recipe.home = std::filesystem::absolute(paths.front());
  const OpenedRuns runs = paths.empty() ? OpenedRuns() : open_runs(paths, true);
  const FigurePage page = make_page(recipe, runs.pointers(), {}, tuning_by_study());
  require_content(recipe, page, recipe.name);
  std::vector<std::string> files;
  if (!std::filesystem::path(o.out).has_extension()) make_folders_above(std::filesystem::path(o.out) / recipe.name);
  if (std::filesystem::is_directory(o.out))
    for (const std::string& format : recipe.formats)
      files.push_back((std::filesystem::path(o.out) / (recipe.name + "." + format)).string());
  else
    files.push_back(o.out);
  for (const std::string& each : files) write_page(page, each);
  std::string told;
  for (const std::string& each : files) told += (told.empty() ? "wrote " : ", ") + each;
  print_result({{"figure", page.id}, {"files", files}, {"caption", page.caption}, {"skipped", runs.skipped}}, told);
  return 0;
}

int run(const Options& o) {
  if (!o.recipe.empty()) return run_recipe(o);
  static const std::vector<std::string> kFigures{"loss", "trajectory", "entropy", "heads", "selection", "series"};
  if (std::find(kFigures.begin(), kFigures.end(), o.figure) == kFigures.end())
    throw UsageError(o.figure.empty() ? "expected a FIGURE, or a recipe with --recipe"
                                      : "FIGURE " + o.figure + did_you_mean(o.figure, kFigures));
  if (!o.split.empty()) throw UsageError("--split goes with --recipe: the figure " + o.figure + " shows no losses at the end");
  if (o.runs.empty()) throw UsageError("RUN is required");
  require_figure_format(o.out);
  const OpenedRuns runs = open_runs(o.runs, o.figure == "trajectory");
  Figure figure = make_figure(o, runs);
  if (figure.curves.empty() && !figure.map) throw DataError("nothing is recorded yet that the figure " + o.figure + " could show");
  set_range(figure.x, o.x_range, "--x-range");
  set_range(figure.y, o.y_range, "--y-range");
  for (const Run& run : runs.runs)
    if (const std::string lost = run.lost(); !lost.empty()) warn("warning: " + run.name() + ": " + lost);
  write_figure(figure, o.out);
  print_result({{"figure", figure.id}, {"file", o.out}, {"skipped", runs.skipped}}, "wrote " + o.out);
  return 0;
}

const RegisterCommand command{
    {"export", "Write a figure as PDF, SVG, PNG or CSV, or its data as JSON.", "saccade export trajectory runs/* --out ood.pdf",
     [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.add_option("FIGURE", o->figure, "loss, trajectory, entropy, heads, selection or series; not with --recipe");
       app.add_option("RUN", o->runs, "Run directories, or folders of runs");
       app.add_option("--recipe", o->recipe,
                      "A figure of several panels as a file says, or one that comes with the program: "
                      "saccade export --recipe figures/ood.json --out ood.pdf");
       app.add_option("--bench", o->bench,
                      "Files that saccade bench --out wrote, or folders of them, for charts of a recipe that show them");
       app.add_option(
              "--out,-o", o->out,
              "File to write: .pdf .svg .png .csv .json, of a recipe .tex too, or a folder (made if it is not there) for all its formats")
           ->required();
       app.add_option("--x", o->x, "x axis: step, tokens, flops or seconds")
           ->check(CLI::IsMember({"step", "tokens", "flops", "seconds"}))
           ->capture_default_str();
       app.add_flag("--log-x", o->log_x, "Logarithmic x axis");
       app.add_flag("--log-y", o->log_y, "Logarithmic y axis");
       app.add_option("--x-range", o->x_range, "Range of the x axis (default: all data)")->expected(2);
       app.add_option("--y-range", o->y_range, "Range of the y axis (default: the data within the x range)")->expected(2);
       app.add_flag("--normalized", o->normalized, "Entropy divided by its maximum");
       app.add_option("--series", o->series, "Which series, for FIGURE series: gradient_norm, captured_mass/layer0 …");
       app.add_option("--domain", o->domain, "One OOD domain (default: the mean)");
       app.add_option("--at-loss", o->at_loss, "Mark this pre-training loss");
       add_pretraining_option(app, o->pretraining);
       app.add_option("--split", o->split,
                      "Of a recipe's losses at the end: validation, as runs recorded them, or test, as their study evaluated them")
           ->check(CLI::IsMember({"validation", "test"}));
       app.add_option("--step", o->step, "Step of the capture, for FIGURE selection (default: the newest)")->check(CLI::NonNegativeNumber);
       app.add_option("--sample", o->sample, "Captured sample, from 0")->capture_default_str();
       app.add_option("--layer", o->layer, "Layer, from 0")->capture_default_str();
       app.add_option("--head", o->head, "Head, from 0")->capture_default_str();
       app.add_option("--map", o->map,
                      "weights, soft_weights, score, maxsim, captured_mass or margin (default: what was selected, else weights)");
       app.add_option("--statistic", o->statistic, "Which, for FIGURE heads: entropy, entropy_normalized, distance, captured_mass …")
           ->capture_default_str();
       const CLI::Option *kind = app.get_option("--pretraining"), *window = app.get_option("--window");
       return [o, kind, window] {
         o->says_pretraining = kind->count() + window->count() > 0;
         return run(*o);
       };
     }}};

}  // namespace
}  // namespace saccade::cli

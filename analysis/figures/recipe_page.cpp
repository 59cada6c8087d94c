#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/end_evaluations.h"
#include "analysis/comparison/group_names.h"
#include "analysis/comparison/run_filter.h"
#include "analysis/comparison/statistics.h"
#include "analysis/figures/answer_figure.h"
#include "analysis/figures/bench_figures.h"
#include "analysis/figures/branch_curves.h"
#include "analysis/figures/count_text.h"
#include "analysis/figures/derived.h"
#include "analysis/figures/empty_panels.h"
#include "analysis/figures/figure_notes.h"
#include "analysis/figures/held_back.h"
#include "analysis/figures/length_figure.h"
#include "analysis/figures/loss_table.h"
#include "analysis/figures/number_figures.h"
#include "analysis/figures/page_caption.h"
#include "analysis/figures/palette.h"
#include "analysis/figures/published.h"
#include "analysis/figures/recipe.h"
#include "analysis/figures/score_figures.h"
#include "analysis/runs/layers.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// Seeds together, in the looks that they have among all, and called as among those of the whole page: where a panel shows fewer, a look
/// would have two names in a legend that stands for all panels.
DrawnSet drawn_groups(const RunSet& runs, const RunSet& on_page, const RunSet& among) {
  std::map<std::string, RunLook> looks;
  const std::vector<RunGroup> every = gather_runs(among.empty() ? runs : among);
  const std::vector<RunLook> all = group_looks(every);
  for (size_t i = 0; i < every.size(); ++i) looks[every[i].seeds.front()->setting()] = all[i];
  const std::vector<RunGroup> here = gather_runs(runs);
  const std::vector<RunGroup> together = gather_runs(on_page);
  const std::vector<std::string> page_names = group_names(together);
  std::map<std::string, std::string> named;
  for (size_t i = 0; i < together.size(); ++i) named[together[i].seeds.front()->setting()] = page_names[i];
  const std::vector<std::string> names = group_names(here, named);
  DrawnSet set;
  for (size_t i = 0; i < here.size(); ++i) {
    const RunLook& look = looks[here[i].seeds.front()->setting()];
    set.push_back({names[i], look.colour, look.marker, look.dash, here[i].seeds});
  }
  return set;
}

Figure heads_of(const DrawnSet& drawn, const std::string& statistic) {
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      if (run->last_statistics()) return head_figure(*run->last_statistics(), statistic, layer_mixers(run->info()));
  return {.id = "heads", .title = statistic};
}

Figure layers_of(const DrawnSet& drawn, const std::string& statistic, XAxis x) {
  for (const DrawnRuns& each : drawn)
    if (!layers_with(*each.seeds.front(), statistic).empty()) return layers_figure(each, statistic, x);
  return {.id = statistic, .title = statistic};
}

PretrainingLoss pretraining_of(const PanelRecipe& panel) { return {parse_pretraining_loss(panel.pretraining), panel.window}; }

/// Nothing where the panel shows losses as runs recorded them. Throws UsageError where no run's study has evaluated any.
std::optional<EndEvaluations> ends_of(const PanelRecipe& panel, const RunSet& runs, const std::string& where) {
  if (!takes_split(panel) || panel.split == "validation" || runs.empty()) return {};
  EndEvaluations ends(runs, panel.split);
  if (ends.count() == 0) throw UsageError(where + "/split is \"" + panel.split + "\": " + how_to_evaluate_ends(panel.split));
  return ends;
}

/// Which text losses at the end are of, and how many runs have none.
std::string ends_note(const EndEvaluations& ends, const RunSet& runs) {
  const TrunksAndBranches trunks(runs);
  const size_t all = trunks.runs().size();
  const auto with = static_cast<size_t>(
      std::count_if(trunks.runs().begin(), trunks.runs().end(), [&](const Run* run) { return ends.of(*run) != nullptr; }));
  std::string text = "Losses at the end: " + ends.split() + " split, up to " + count_text(static_cast<double>(ends.tokens())) +
                     " tokens of every domain, as the study evaluated them";
  if (with < all)
    text += "; " + std::to_string(all - with) + " of " + std::to_string(all) +
            (all - with == 1 ? " runs was not, and is left out" : " runs were not, and are left out");
  return text + ".";
}

/// Of a trajectory that is not over the validation loss what it is over.
std::string pretraining_note(const PanelRecipe& panel) {
  if (panel.chart != "trajectory" || panel.pretraining == "validation") return "";
  return "Pre-training loss: " + describe(pretraining_of(panel)) + ".";
}

void require_pretraining(const RunSet& runs, const PanelRecipe& panel, const std::string& where) try {
  if (takes_pretraining(panel)) require_recorded(runs, pretraining_of(panel));
} catch (const DataError& error) {
  throw UsageError(where + "/pretraining: " + error.what());
}

ScoreChoice chosen_scores(const PanelRecipe& panel) { return {panel.task, panel.tasks, panel.checkpoint_mean}; }

Figure figure_of(const PanelRecipe& panel, const DrawnSet& drawn, const EndEvaluations* ends) {
  CurveRecipe recipe{.x = panel.x,
                     .log_x = panel.x_scale == AxisKind::logarithmic,
                     .log_y = panel.y_scale == AxisKind::logarithmic,
                     .spread = panel.spread};
  if (panel.smoothing > 0) recipe.smoothing = {Smoothing::Kind::exponential, panel.smoothing};
  const std::string statistic = panel.statistic.empty() ? "entropy_normalized" : panel.statistic;
  if (panel.chart == "loss") return loss_figure(drawn, recipe);
  if (panel.chart == "trajectory") return trajectory_figure(drawn, panel.domain, panel.at_loss, pretraining_of(panel));
  if (panel.chart == "held-back") return held_back_figure(drawn);
  if (panel.chart.starts_with("length")) return length_figure(drawn, panel.domain, panel.chart == "length-last", panel.spread);
  if (panel.chart == "gap") return gap_figure(drawn, recipe);
  if (panel.chart == "series") return series_figure(drawn, panel.series, recipe);
  if (panel.chart == "layers") return layers_of(drawn, statistic, panel.x);
  if (panel.chart == "heads") return heads_of(drawn, statistic);
  if (panel.chart == "score-curve") return score_curve(drawn, panel.task, panel.against);
  if (panel.chart == "score-map") return score_map(drawn, panel.task, panel.against, panel.rows);
  if (panel.chart == "score-dots") return score_dots(drawn, chosen_scores(panel));
  if (panel.chart == "answers") return answer_figure(drawn, panel.against);
  if (panel.chart == "position") return position_figure(drawn, panel.domain);
  return number_figure(drawn, panel.value, panel.against, panel.fit, ends);
}

void set_axes(Figure& figure, const PanelRecipe& panel) {
  const auto set = [](AxisRecipe& axis, AxisKind kind, const std::optional<std::array<double, 2>>& range) {
    axis.logarithmic = kind == AxisKind::logarithmic;
    if (range) axis.range = range;
  };
  set(figure.x, panel.x_scale, panel.x_range);
  set(figure.y, panel.y_scale, panel.y_range);
  make_symmetric(figure, panel.x_scale == AxisKind::symmetric, panel.y_scale == AxisKind::symmetric);
}

void require_series(const RunSet& runs, const PanelRecipe& panel, const std::string& where) {
  if (panel.chart != "series" || runs.empty()) return;
  std::vector<std::string> names;
  for (const Run* run : runs)
    for (const Series& series : run->series()) {
      if (series.name == panel.series) return;
      if (std::find(names.begin(), names.end(), series.name) == names.end()) names.push_back(series.name);
    }
  if (!names.empty()) throw UsageError(where + "/series is \"" + panel.series + "\": no run has it" + did_you_mean(panel.series, names));
}

/// Of the recipe, where one of its charts shows them. Those of a folder that nobody named may be missing.
std::vector<BenchedModel> benched(const FigureRecipe& recipe) {
  if (std::none_of(recipe.panels.begin(), recipe.panels.end(), [](const PanelRecipe& panel) { return is_bench_chart(panel.chart); }))
    return {};
  std::vector<std::filesystem::path> paths;
  for (const std::string& path : recipe.bench) paths.push_back(recipe.home / path);
  std::error_code error;
  if (paths.empty() && std::filesystem::is_directory(recipe.home / "bench", error)) paths.push_back(recipe.home / "bench");
  return load_bench(paths);
}

/// The panel's own table, and the paper's below it.
void add_tables(FigurePage& page, const PanelRecipe& panel, const RunSet& mine, const DrawnSet& drawn,
                const std::vector<BenchedModel>& models, const TuningOfRun& tuning, const EndEvaluations* ends) {
  if (panel.chart == "table")
    page.tables.push_back(loss_table(mine, {panel.at_loss, panel.domain, panel.title, tuning, pretraining_of(panel), ends}));
  if (panel.chart == "scores") page.tables.push_back(score_table(drawn, chosen_scores(panel), panel.title));
  if (panel.chart == "speed-table") page.tables.push_back(bench_table(models, panel.relative, panel.title));
  if (!panel.published.empty()) page.tables.push_back(published_page_table(load_published(panel.published, panel.published_rows)));
}

/// What a paper prints lies far from runs of another size, and is shown all the same: it is no outlier.
void reach_all_values(Figure& figure) {
  double least = INFINITY, most = -INFINITY;
  for (const Curve& curve : figure.curves)
    for (const Column* column : {&curve.y, &curve.low, &curve.high})
      for (const double value : *column)
        if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
  if (!(least < most)) return;
  const double room = 0.04 * (most - least);
  figure.y.range = std::array{least > 0 ? std::max(least - room, 0.9 * least) : least - room, most + room};
}

void add_published(Figure& figure, const PanelRecipe& panel) {
  if (panel.published.empty()) return;
  const PublishedTable table = load_published(panel.published, panel.published_rows);
  if (panel.chart == "setting") {
    add_published_numbers(figure, table, panel.value, panel.against);
    reach_all_values(figure);
  }
  if (panel.chart == "score-dots") add_published_scores(figure, table);
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

/// Those of which some panel shows any.
RunSet taken(const RunSet& runs, const std::vector<PanelRecipe>& panels) {
  std::vector<RunFilter> filters;
  for (const PanelRecipe& panel : panels) filters.emplace_back(panel.runs);
  RunSet chosen;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(chosen), [&](const Run* run) {
    return std::any_of(filters.begin(), filters.end(), [&](const RunFilter& filter) { return filter.passes(*run); });
  });
  return chosen;
}

}  // namespace

RunSet runs_of(const FigureRecipe& recipe, const RunSet& runs) {
  const RunFilter filter(recipe.runs);
  RunSet chosen;
  for (const Run* run : runs) {
    const std::string folder = run->info().directory.filename().string();
    const bool named = recipe.folders.empty() || std::find(recipe.folders.begin(), recipe.folders.end(), folder) != recipe.folders.end();
    if (named && filter.passes(*run)) chosen.push_back(run);
  }
  return chosen;
}

FigurePage make_page(const FigureRecipe& recipe, const RunSet& runs, const RunSet& among, const TuningOfRun& tuning) {
  const RunSet chosen = runs_of(recipe, runs);
  const RunSet on_page = taken(chosen, recipe.panels);
  const RunSet& all = among.empty() ? chosen : among;
  FigurePage page{.id = recipe.name, .title = recipe.title.empty() ? recipe.name : recipe.title, .style = recipe.style};
  std::vector<std::string> notes;
  const std::vector<BenchedModel> models = benched(recipe);
  std::map<std::string, VariantLook> looks;  // of the runs on the page, by name: its panels may share a legend
  const bool any_of_runs =
      std::any_of(recipe.panels.begin(), recipe.panels.end(), [](const auto& panel) { return !is_bench_chart(panel.chart); });
  if (any_of_runs && !models.empty())
    for (const DrawnRuns& each : drawn_groups(on_page, on_page, all)) looks[each.label] = {each.colour, each.marker};
  for (size_t i = 0; i < recipe.panels.size(); ++i) {
    const PanelRecipe& panel = recipe.panels[i];
    const RunSet mine = taken(chosen, {panel});
    const std::string where = "/panels/" + std::to_string(i);
    require_series(mine, panel, where);
    require_pretraining(mine, panel, where);
    const std::optional<EndEvaluations> evaluated = ends_of(panel, mine, where);
    const EndEvaluations* ends = evaluated ? &*evaluated : nullptr;
    add_note(notes, pretraining_note(panel));
    if (is_table_chart(panel.chart)) {
      add_tables(page, panel, mine, drawn_groups(mine, on_page, all), models, tuning, ends);
      continue;
    }
    Figure figure;
    if (is_bench_chart(panel.chart)) {
      BenchFigure made = bench_figure(models, panel.chart, panel.relative, panel.prompt, looks);
      figure = std::move(made.figure);
      for (const std::string& note : made.notes) add_note(notes, note);
    } else {
      const DrawnSet drawn = drawn_groups(mine, on_page, all);
      figure = figure_of(panel, drawn, ends);
      subdue_branches(figure, drawn);
      if (ends) add_note(notes, ends_note(*ends, mine));
    }
    for (const std::string& note : std::exchange(figure.notes, {})) add_note(notes, note);  // the caption has them
    add_published(figure, panel);
    set_axes(figure, panel);
    figure.title = panel.title;
    for (const std::string& line : figure.provenance)
      if (std::find(page.provenance.begin(), page.provenance.end(), line) == page.provenance.end()) page.provenance.push_back(line);
    if (panel.smoothing > 0)
      notes.push_back("Smoothed by a debiased exponential mean with a reach of " + count_text(panel.smoothing) + " on the x axis.");
    page.panels.push_back(std::move(figure));
  }
  add_note(notes, bench_caption(models));
  const DrawnSet drawn = any_of_runs ? drawn_groups(chosen, chosen, all) : DrawnSet();
  const bool several = std::any_of(drawn.begin(), drawn.end(), [](const DrawnRuns& each) { return each.seeds.size() > 1; });
  if (several) add_note(notes, seeds_note(recipe));
  add_note(notes, tuning_note(drawn, tuning));
  add_note(notes, empty_note(recipe, page));
  page.caption = caption_of(recipe, drawn, notes);
  return page;
}

}  // namespace saccade

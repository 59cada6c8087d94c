#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "analysis/comparison/group_names.h"
#include "analysis/comparison/run_filter.h"
#include "analysis/comparison/statistics.h"
#include "analysis/figures/bench_figures.h"
#include "analysis/figures/count_text.h"
#include "analysis/figures/derived.h"
#include "analysis/figures/figure_notes.h"
#include "analysis/figures/held_back.h"
#include "analysis/figures/length_figure.h"
#include "analysis/figures/loss_table.h"
#include "analysis/figures/number_figures.h"
#include "analysis/figures/palette.h"
#include "analysis/figures/published.h"
#include "analysis/figures/recipe.h"
#include "analysis/figures/score_figures.h"
#include "analysis/runs/layers.h"
#include "analysis/runs/provenance.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// Seeds together, in the looks that they have among all.
DrawnSet drawn_groups(const RunSet& runs, const RunSet& among) {
  std::map<std::string, RunLook> looks;
  const std::vector<RunGroup> every = gather_runs(among.empty() ? runs : among);
  const std::vector<RunLook> all = group_looks(every);
  for (size_t i = 0; i < every.size(); ++i) looks[every[i].seeds.front()->setting()] = all[i];
  const std::vector<RunGroup> here = gather_runs(runs);
  const std::vector<std::string> names = group_names(here);
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

ScoreChoice chosen_scores(const PanelRecipe& panel) { return {panel.task, panel.tasks, panel.checkpoint_mean}; }

Figure figure_of(const PanelRecipe& panel, const DrawnSet& drawn) {
  CurveRecipe recipe{.x = panel.x,
                     .log_x = panel.x_scale == AxisKind::logarithmic,
                     .log_y = panel.y_scale == AxisKind::logarithmic,
                     .spread = panel.spread};
  if (panel.smoothing > 0) recipe.smoothing = {Smoothing::Kind::exponential, panel.smoothing};
  const std::string statistic = panel.statistic.empty() ? "entropy_normalized" : panel.statistic;
  if (panel.chart == "loss") return loss_figure(drawn, recipe);
  if (panel.chart == "trajectory") return trajectory_figure(drawn, panel.domain, panel.at_loss);
  if (panel.chart == "held-back") return held_back_figure(drawn);
  if (panel.chart.starts_with("length")) return length_figure(drawn, panel.domain, panel.chart == "length-last", panel.spread);
  if (panel.chart == "gap") return gap_figure(drawn, recipe);
  if (panel.chart == "series") return series_figure(drawn, panel.series, recipe);
  if (panel.chart == "layers") return layers_of(drawn, statistic, panel.x);
  if (panel.chart == "heads") return heads_of(drawn, statistic);
  if (panel.chart == "score-curve") return score_curve(drawn, panel.task, panel.against);
  if (panel.chart == "score-map") return score_map(drawn, panel.task, panel.against, panel.rows);
  if (panel.chart == "score-dots") return score_dots(drawn, chosen_scores(panel));
  if (panel.chart == "position") return position_figure(drawn, panel.domain);
  return number_figure(drawn, panel.value, panel.against, panel.fit);
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

/// "Title. Transformer++ (seeds 1, 2; 61 k tokens), Avey (seed 1; …). Saccade 0.1.0."
std::string caption_of(const FigureRecipe& recipe, const DrawnSet& drawn, const std::vector<std::string>& notes) {
  std::string text = recipe.title;
  if (!text.empty() && text.back() != '.') text += ".";
  if (!recipe.source.empty()) text += " After " + recipe.source + ".";
  std::string runs;
  for (const DrawnRuns& each : drawn) {
    std::string seeds;
    double tokens = 0;
    bool open = false;
    for (const Run* run : each.seeds) {
      seeds += (seeds.empty() ? "" : ", ") + std::to_string(run->info().seed);
      tokens = std::max(tokens, run_number(*run, "tokens"));
      open |= run->info().state != RunState::finished;
    }
    runs += (runs.empty() ? "" : ", ") + each.label + " (seed" + (each.seeds.size() > 1 ? "s " : " ") + seeds + "; " + count_text(tokens) +
            " tokens" + (open ? ", not finished" : "") + ")";
  }
  if (!runs.empty()) text += (text.empty() ? "" : " ") + runs + ".";
  for (const std::string& note : notes) text += " " + note;
  return text + " Saccade " + library_versions().value("saccade", std::string()) + ".";
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

bool is_table(const std::string& chart) { return chart == "table" || chart == "scores" || chart == "speed-table"; }

/// The panel's own table, and the paper's below it.
void add_tables(FigurePage& page, const PanelRecipe& panel, const RunSet& mine, const RunSet& all, const std::vector<BenchedModel>& models,
                const TuningOfRun& tuning) {
  if (panel.chart == "table") page.tables.push_back(loss_table(mine, {panel.at_loss, panel.domain, panel.title, tuning}));
  if (panel.chart == "scores") page.tables.push_back(score_table(drawn_groups(mine, all), chosen_scores(panel), panel.title));
  if (panel.chart == "speed-table") page.tables.push_back(bench_table(models, panel.relative, panel.title));
  if (!panel.published.empty()) page.tables.push_back(published_page_table(load_published(panel.published, panel.published_rows)));
}

void add_published(Figure& figure, const PanelRecipe& panel) {
  if (panel.published.empty()) return;
  const PublishedTable table = load_published(panel.published, panel.published_rows);
  if (panel.chart == "setting") add_published_numbers(figure, table, panel.value, panel.against);
  if (panel.chart == "score-dots") add_published_scores(figure, table);
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

}  // namespace

std::vector<std::string> empty_parts(const FigureRecipe& recipe, const FigurePage& page) {
  std::vector<std::string> parts;
  size_t figures = 0, tables = 0;
  for (size_t i = 0; i < recipe.panels.size(); ++i) {
    const std::string& chart = recipe.panels[i].chart;
    bool shows = false;
    if (is_table(chart)) {
      shows = !page.tables.at(tables++).rows.empty();
      tables += !recipe.panels[i].published.empty();
    } else {
      const Figure& figure = page.panels.at(figures++);
      shows = figure.map || std::any_of(figure.curves.begin(), figure.curves.end(),
                                        [](const Curve& curve) { return !curve.x.empty() && !is_published(curve); });
    }
    if (!shows) parts.push_back("panel " + std::to_string(i + 1) + " (" + chart + ")");
  }
  return parts;
}

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
  const RunSet& all = among.empty() ? chosen : among;
  FigurePage page{.id = recipe.name, .title = recipe.title.empty() ? recipe.name : recipe.title, .style = recipe.style};
  std::vector<std::string> notes;
  const std::vector<BenchedModel> models = benched(recipe);
  bool shows_runs = false;
  for (size_t i = 0; i < recipe.panels.size(); ++i) {
    const PanelRecipe& panel = recipe.panels[i];
    shows_runs |= !is_bench_chart(panel.chart);
    const RunFilter narrower(panel.runs);
    RunSet mine;
    std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(mine), [&](const Run* run) { return narrower.passes(*run); });
    require_series(mine, panel, "/panels/" + std::to_string(i));
    if (is_table(panel.chart)) {
      add_tables(page, panel, mine, all, models, tuning);
      continue;
    }
    Figure figure;
    if (is_bench_chart(panel.chart)) {
      BenchFigure made = bench_figure(models, panel.chart, panel.relative, panel.prompt);
      figure = std::move(made.figure);
      for (const std::string& note : made.notes) add_note(notes, note);
    } else {
      figure = figure_of(panel, drawn_groups(mine, all));
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
  const DrawnSet drawn = shows_runs ? drawn_groups(chosen, all) : DrawnSet();
  const bool several = std::any_of(drawn.begin(), drawn.end(), [](const DrawnRuns& each) { return each.seeds.size() > 1; });
  if (several) {
    const Spread spread = recipe.panels.front().spread;
    notes.push_back(std::string("Means over seeds; bands are ") + (spread == Spread::interval ? "the " : "one ") + to_string(spread) +
                    (page.tables.empty() ? "." : ", ± one sample standard deviation."));
  }
  add_note(notes, tuning_note(drawn, tuning));
  page.caption = caption_of(recipe, drawn, notes);
  return page;
}

}  // namespace saccade

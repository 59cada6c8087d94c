#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/comparison.h"
#include "analysis/comparison/training_loss.h"
#include "analysis/figures/figure.h"
#include "analysis/figures/figure_notes.h"
#include "analysis/figures/held_back.h"
#include "analysis/figures/line.h"
#include "analysis/figures/palette.h"
#include "analysis/runs/layers.h"

namespace saccade {
namespace {

const char* axis_title(XAxis x) {
  switch (x) {
    case XAxis::tokens: return "training tokens";
    case XAxis::flops: return "training FLOPs";
    case XAxis::seconds: return "training time (s)";
    case XAxis::step: break;
  }
  return "step";
}

/// Between white and the colour, so that its hue stays.
Colour paler(Colour colour, double strength) {
  const auto mix = [&](uint8_t c) { return static_cast<uint8_t>(std::lround(255 - (255 - c) * strength)); };
  return {mix(colour.r), mix(colour.g), mix(colour.b)};
}

using Measure = std::function<Line(const Run&)>;
using Adjust = std::function<void(Curve&)>;

/// Losses, shares, norms, rates and memory are never below zero. Statistics of heads may be.
bool never_negative(const std::string& series) {
  constexpr std::array kBegins{"train/",        "validation/",   "ood/",          "gradient_norm", "tokens_per_second",
                               "learning_rate", "device_memory", "process_memory"};
  return std::any_of(kBegins.begin(), kBegins.end(), [&](const char* begin) { return series.starts_with(begin); });
}

/// A band of seeds that lie far apart ends at zero where no value can be less.
void keep_from_negative(Figure& figure, const std::string& series) {
  if (!never_negative(series)) return;
  for (Curve& curve : figure.curves)
    if (std::any_of(curve.low.begin(), curve.low.end(), [](double v) { return v < 0; }))
      for (double& v : curve.low.edit()) v = v < 0 ? 0 : v;
}

/// Of one run its line, of several seeds their mean and band. Where the colour does not tell the architecture, a few markers do.
void add_curve(Figure& figure, const DrawnRuns& drawn, Spread spread, const Measure& measure, const Adjust& adjust = {}) {
  std::vector<Line> lines;
  for (const Run* run : drawn.seeds)
    if (Line line = measure(*run); !line.x.empty()) lines.push_back(std::move(line));
  if (lines.empty()) return;
  const size_t seeds = lines.size();
  Line line = mean_of(lines, spread);
  Curve curve{drawn.label, std::move(line.x), std::move(line.y), drawn.colour, drawn.dash};
  if (drawn.seeds.size() > 1) curve.label += ", mean of " + std::to_string(seeds);
  curve.low = std::move(line.low), curve.high = std::move(line.high);
  curve.marker = drawn.marker == Marker::circle ? Marker::none : drawn.marker;
  curve.sparse = true;
  if (adjust) adjust(curve);
  figure.curves.push_back(std::move(curve));
}

/// What is recorded at every step: thin; smoothed with the raw values of a single run pale beneath.
void add_steps(Figure& figure, const DrawnRuns& drawn, const std::string& series, const CurveRecipe& recipe, const Adjust& adjust = {}) {
  const bool smooth = recipe.smoothing.kind != Smoothing::Kind::none, several = drawn.seeds.size() > 1;
  const size_t before = figure.curves.size();
  if (smooth && !several) {
    add_curve(
        figure, drawn, recipe.spread, [&](const Run& run) { return line_of(run, series, recipe.x); },
        [&](Curve& c) {
          if (adjust) adjust(c);
          c.width = 0.6, c.in_legend = false, c.marker = Marker::none;
          c.colour = paler(c.colour, 0.3);
          c.label += ", raw";
        });
    if (figure.curves.size() > before) std::rotate(figure.curves.begin(), figure.curves.end() - 1, figure.curves.end());  // beneath others
  }
  add_curve(
      figure, drawn, recipe.spread,
      [&](const Run& run) {
        if (recipe.values && !smooth && !several) {
          auto [x, y] = recipe.values(run, series);
          return Line{std::move(x), std::move(y)};
        }
        const Line line = line_of(run, series, recipe.x, smooth || several);
        return smooth ? smoothed(line, recipe.smoothing) : line;
      },
      [&](Curve& c) {
        c.width = smooth ? 1.2 : several ? 1.0 : 0.7;
        if (adjust) adjust(c);
      });
}

/// What kind of curve it is, for the legend only.
void add_key(Figure& figure, const std::string& label, double width, Marker marker) {
  Curve key{label, {}, {}, {0x70, 0x70, 0x70}};
  key.width = width;
  key.marker = marker;
  figure.curves.push_back(std::move(key));
}

/// One line a run, and how what is shown was smoothed.
std::vector<std::string> provenance(const DrawnSet& set, const CurveRecipe& recipe = {}) {
  std::vector<std::string> lines;
  RunSet runs;
  for (const DrawnRuns& drawn : set) runs.insert(runs.end(), drawn.seeds.begin(), drawn.seeds.end());
  if (recipe.smoothing.kind != Smoothing::Kind::none) {
    std::array<char, 96> text{};
    const bool window = recipe.smoothing.kind == Smoothing::Kind::window;
    std::snprintf(text.data(), text.size(), "smoothing: %s of %g on the x axis",
                  window ? "mean within a centred window" : "debiased exponential mean with a reach", recipe.smoothing.width);
    lines.emplace_back(text.data());
  }
  if (std::any_of(set.begin(), set.end(), [](const DrawnRuns& drawn) { return drawn.seeds.size() > 1; }))
    lines.push_back(std::string("bands: ") + (recipe.spread == Spread::interval ? "" : "one ") + to_string(recipe.spread) + " over seeds");
  for (const Run* run : runs) {
    const RunInfo& info = run->info();
    std::string line = "run " + info.directory.filename().string() + ": " + info.title + ", seed " + std::to_string(info.seed) + ", step " +
                       std::to_string(info.step) + " of " + std::to_string(info.steps);
    for (const char* key : {"config_hash", "corpus_hash", "tokenizer_hash", "code_version", "device", "started"})
      if (const auto value = info.provenance.find(key); value != info.provenance.end() && value->is_string())
        line += std::string(", ") + key + " " + value->get<std::string>();
    for (const std::string& problem : {run->damage(), run->lost()})
      if (!problem.empty()) line += ", " + problem;
    lines.push_back(line);
  }
  return lines;
}

/// "gradient_norm" → "gradient norm"; the unit behind it unless it is a pure number.
std::string readable(const std::string& name, const std::string& unit) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', ' ');
  std::replace(text.begin(), text.end(), '/', ' ');
  return text + (unit.empty() || unit == "1" ? "" : " (" + unit + ")");
}

}  // namespace

DrawnSet each_run(const RunSet& runs, const RunSet& among) {
  const std::vector<RunLook> looks = run_looks(runs, among);
  DrawnSet set;
  for (size_t i = 0; i < runs.size(); ++i) set.push_back({looks[i].label, looks[i].colour, looks[i].marker, looks[i].dash, {runs[i]}});
  return set;
}

namespace {

/// OOD domains of any of the runs, in the order met.
std::vector<std::string> ood_domains(const DrawnSet& drawn) {
  std::vector<std::string> domains;
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      for (const std::string& domain : run->ood_domains())
        if (std::find(domains.begin(), domains.end(), domain) == domains.end()) domains.push_back(domain);
  return domains;
}

/// A curve for each domain and thing drawn, and what the dashes mean.
void add_domains(Figure& figure, const DrawnSet& drawn, const CurveRecipe& recipe) {
  constexpr std::array kDashes{Dash::dash, Dash::dot, Dash::dash_dot};
  const std::vector<std::string> domains = ood_domains(drawn);
  for (size_t i = 0; i < domains.size(); ++i) {
    const auto style = [&](Curve& curve) {
      curve.dash = kDashes[i % kDashes.size()];
      if (i >= kDashes.size()) curve.width = 0.8;  // the dashes come again
    };
    for (const DrawnRuns& each : drawn)
      add_curve(
          figure, each, recipe.spread, [&](const Run& run) { return line_of(run, "ood/loss/" + domains[i], recipe.x); },
          [&](Curve& c) {
            c.label += ", OOD " + domains[i], c.in_legend = false;
            style(c);
          });
    add_key(figure, "OOD " + domains[i], 1.5, Marker::none);
    style(figure.curves.back());
  }
}

}  // namespace

Figure loss_figure(const DrawnSet& drawn, const CurveRecipe& recipe, const RunSet& training_of) {
  Figure figure{.id = "loss",
                .title = "Pre-training and OOD loss",
                .x = {axis_title(recipe.x), recipe.log_x, false, {}},
                .y = {"loss (nats)", recipe.log_y, false, {}}};
  bool any_validation = false, any_ood = false, any_training = false;
  for (const DrawnRuns& each : drawn) {
    const auto has = [&](const char* series) {
      return std::any_of(each.seeds.begin(), each.seeds.end(), [&](const Run* run) { return run->find(series); });
    };
    const bool validated = has("validation/loss");
    const bool wanted = training_of.empty() || std::any_of(each.seeds.begin(), each.seeds.end(), [&](const Run* run) {
                          return std::find(training_of.begin(), training_of.end(), run) != training_of.end();
                        });
    any_validation = any_validation || validated;
    any_ood = any_ood || (has("ood/loss") && !recipe.each_domain);
    if (wanted && has("train/loss")) {
      any_training = true;
      add_steps(figure, each, "train/loss", recipe, [&](Curve& c) {
        c.in_legend = !validated;
        if (validated) c.label += ", training", c.marker = Marker::none;
      });
    }
    add_curve(figure, each, recipe.spread, [&](const Run& run) { return line_of(run, "validation/loss", recipe.x); });
    if (recipe.each_domain) continue;
    add_curve(
        figure, each, recipe.spread, [&](const Run& run) { return line_of(run, "ood/loss", recipe.x); },
        [&](Curve& c) { c.label += ", OOD", c.marker = each.marker, c.sparse = drawn.size() > 12, c.in_legend = false; });
  }
  if (recipe.each_domain) add_domains(figure, drawn, recipe);
  if (any_validation) add_key(figure, "validation", 1.5, Marker::none);
  if (any_ood) add_key(figure, "OOD", 1.5, Marker::circle);
  if (any_training) add_key(figure, "training", 0.6, Marker::none);
  keep_from_negative(figure, "train/loss");
  figure.provenance = provenance(drawn, recipe);
  return figure;
}

namespace {

/// Of several seeds the mean, at the steps that all have.
Trajectory mean_trajectory(const std::vector<Trajectory>& seeds) {
  Trajectory mean = seeds.front();
  for (size_t k = 1; k < seeds.size(); ++k) {
    const Trajectory& next = seeds[k];
    Trajectory both;
    for (size_t i = 0, j = 0; i < mean.step.size(); ++i) {
      while (j < next.step.size() && next.step[j] < mean.step[i]) ++j;
      if (j == next.step.size()) break;
      if (next.step[j] != mean.step[i]) continue;
      const auto n = static_cast<double>(k);
      both.step.push_back(mean.step[i]);
      both.pretraining.push_back((n * mean.pretraining[i] + next.pretraining[j]) / (n + 1));
      both.ood.push_back((n * mean.ood[i] + next.ood[j]) / (n + 1));
    }
    mean = std::move(both);
  }
  return mean;
}

}  // namespace

namespace {

/// The mean trajectory of some seeds, in the look of their row; nothing where they have no point in common.
std::optional<Curve> mean_curve(const DrawnRuns& row, const std::vector<Trajectory>& measured) {
  if (measured.empty()) return {};
  Trajectory t = mean_trajectory(measured);
  if (t.step.empty()) return {};
  const std::string label = row.seeds.size() > 1 ? row.label + ", mean of " + std::to_string(measured.size()) : row.label;
  return Curve{label, std::move(t.pretraining), std::move(t.ood), row.colour, row.dash, row.marker};
}

}  // namespace

Figure trajectory_figure(const DrawnSet& drawn, const std::string& domain, std::optional<double> at_loss,
                         const PretrainingLoss& pretraining, const TuningOfRun& tuning) {
  Figure figure{.id = "ood-against-pretraining", .title = "OOD loss against pre-training loss"};
  const char* kinds[] = {"pre-training loss (nats)", "pre-training loss, domains by their tokens (nats)", "training loss, smoothed (nats)"};
  figure.x = {kinds[static_cast<size_t>(pretraining.kind)], false, true, {}};
  figure.y = {domain.empty() ? "OOD loss (nats)" : "OOD loss on " + domain + " (nats)", false, false, {}};
  if (!domain.empty()) figure.id += "-" + domain;
  RunSet all;
  for (const DrawnRuns& each : drawn) all.insert(all.end(), each.seeds.begin(), each.seeds.end());
  const TrunksAndBranches trunks(all);
  const RunSet& own = trunks.runs();
  bool any_ends = false;
  for (const DrawnRuns& each : drawn) {
    std::vector<Trajectory> measured, ends;
    for (const Run* run : each.seeds) {
      if (std::find(own.begin(), own.end(), run) == own.end()) continue;  // a branch is a point of its run
      if (Trajectory t = trajectory(*run, domain, pretraining); !t.step.empty()) measured.push_back(std::move(t));
      if (!trunks.has_ends(*run)) continue;
      if (Trajectory t = trunks.trajectory_of(*run, domain, pretraining); !t.step.empty()) ends.push_back(std::move(t));
    }
    std::optional<Curve> curve = mean_curve(each, measured);
    if (!curve) continue;
    curve->sparse = drawn.size() > 12;
    const std::string tuned = tuning ? short_words(tuning_of_row(each.seeds, tuning)) : std::string();
    curve->note = joined_note(ends.empty() ? kMidSchedule : "", tuned);
    figure.curves.push_back(*std::move(curve));
    if (ends.empty()) continue;
    Trajectory t = mean_trajectory(ends);
    Curve of_ends{
        figure.curves.back().label + ", branch ends", std::move(t.pretraining), std::move(t.ood), each.colour, Dash::dot, Marker::square};
    of_ends.in_legend = false;
    of_ends.note = joined_note(kBranchEnds, tuned);
    figure.curves.push_back(std::move(of_ends));
    any_ends = true;
  }
  if (any_ends) {
    add_key(figure, "ends of cooldown branches", 1.5, Marker::square);
    figure.curves.back().dash = Dash::dot;
  }
  figure.identity_line = true;
  if (at_loss) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "at loss %.3f", *at_loss);
    figure.vertical_line = at_loss;
    figure.vertical_label = text.data();
  }
  for (std::string note : {schedule_note(figure.curves), tuning_note(drawn, tuning)})
    if (!note.empty()) figure.notes.push_back(std::move(note));
  figure.provenance = provenance(drawn);
  return figure;
}

Figure held_back_figure(const DrawnSet& drawn) {
  Figure figure{.id = "held-back-against-training", .title = "Loss on held-back text against training loss"};
  figure.x = {"training loss, mean of 1 % of the steps (nats)", false, true, {}};
  figure.y = {"held-back loss (nats)", false, false, {}};
  RunSet all;
  for (const DrawnRuns& each : drawn) all.insert(all.end(), each.seeds.begin(), each.seeds.end());
  const TrunksAndBranches trunks(all);
  const RunSet& own = trunks.runs();
  for (const DrawnRuns& each : drawn) {
    std::vector<Trajectory> measured;
    for (const Run* run : each.seeds)
      if (std::find(own.begin(), own.end(), run) != own.end())  // branches of others would begin at the end of their run
        if (Trajectory t = held_back_trajectory(*run); !t.step.empty()) measured.push_back(std::move(t));
    std::optional<Curve> curve = mean_curve(each, measured);
    if (!curve) continue;
    curve->sparse = drawn.size() > 12;
    figure.curves.push_back(*std::move(curve));
  }
  figure.identity_line = true;
  figure.provenance = provenance(drawn);
  return figure;
}

Figure series_figure(const DrawnSet& drawn, const std::string& series_name, const CurveRecipe& recipe) {
  std::string unit;
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      if (const Series* series = run->find(series_name)) unit = series->unit;
  Figure figure{.id = series_name,
                .title = readable(series_name, ""),
                .x = {axis_title(recipe.x), recipe.log_x, false, {}},
                .y = {readable(series_name, unit), recipe.log_y, false, {}}};
  std::replace(figure.id.begin(), figure.id.end(), '/', '-');
  const bool every_step =
      series_name == "gradient_norm" || series_name == "tokens_per_second" || series_name == "train/loss" || series_name == "learning_rate";
  for (const DrawnRuns& each : drawn) {
    if (every_step)
      add_steps(figure, each, series_name, recipe);
    else
      add_curve(figure, each, recipe.spread, [&](const Run& run) { return line_of(run, series_name, recipe.x); });
  }
  keep_from_negative(figure, series_name);
  figure.provenance = provenance(drawn, recipe);
  return figure;
}

Figure gap_figure(const DrawnSet& drawn, const CurveRecipe& recipe, bool ratio) {
  Figure figure{.id = ratio ? "ood-ratio" : "ood-gap",
                .title = ratio ? "OOD loss divided by pre-training loss" : "OOD loss minus pre-training loss",
                .x = {axis_title(recipe.x), recipe.log_x, false, {}},
                .y = {ratio ? "OOD / pre-training loss" : "gap (nats)"}};
  for (const DrawnRuns& each : drawn)
    add_curve(figure, each, recipe.spread, [&](const Run& run) { return gap_line(run, recipe.x, ratio); });
  if (ratio) keep_from_negative(figure, "ood/loss");
  figure.provenance = provenance(drawn, recipe);
  return figure;
}

Figure loss_figure(const RunSet& runs, XAxis x, bool log_x, bool log_y, const RunSet& among) {
  return loss_figure(each_run(runs, among), {.x = x, .log_x = log_x, .log_y = log_y});
}

Figure trajectory_figure(const RunSet& runs, const std::string& domain, std::optional<double> at_loss, const RunSet& among,
                         const PretrainingLoss& pretraining, const TuningOfRun& tuning) {
  return trajectory_figure(each_run(runs, among), domain, at_loss, pretraining, tuning);
}

Figure series_figure(const RunSet& runs, const std::string& series_name, XAxis x, bool log_x, bool log_y, const RunSet& among) {
  return series_figure(each_run(runs, among), series_name, {.x = x, .log_x = log_x, .log_y = log_y});
}

Figure entropy_figure(const RunSet& runs, XAxis x, bool normalized, const RunSet& among) {
  const std::string name = normalized ? "entropy_normalized" : "entropy";
  Figure figure{
      .id = name, .title = "Attention entropy by layer", .x = {axis_title(x), false, false, {}}, .y = {"entropy (nats)", false, false, {}}};
  if (normalized) figure.y = {"entropy / ln(positions)", false, false, std::array<double, 2>{0, 1}};
  const DrawnSet set = each_run(runs, among);
  for (const DrawnRuns& each : set)
    for (const LayerSeries& layer : layers_with(*each.seeds.front(), name))
      add_curve(
          figure, each, Spread::deviation, [&](const Run& run) { return line_of(run, layer.name, x); },
          [&](Curve& c) {
            c.label += ", " + layer.label;
            c.colour = paler(c.colour, 0.4 + 0.6 * layer.depth);
          });
  figure.provenance = provenance(set);
  return figure;
}

}  // namespace saccade

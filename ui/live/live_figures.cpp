#include "ui/live/live_figures.h"

#include <QCoreApplication>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/figures/palette.h"
#include "analysis/runs/layers.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/live/point_in_run.h"
#include "ui/run_selection.h"
#include "ui/run_summary.h"

namespace saccade::ui {

namespace {

constexpr size_t kFew = 6;  ///< things whose values of every step can be told apart in one chart

QString tr(const char* text, int n = -1) { return QCoreApplication::translate("LivePage", text, nullptr, n); }

bool recorded(const StatisticsRecord& record, const std::string& name) {
  return std::any_of(record.statistics.begin(), record.statistics.end(), [&](const HeadStatistic& s) { return s.name == name; });
}

/// What the cards of a single run show: the run chosen in the list where it is shown, else the first.
void add_single(LiveFigures& figures, Figure (&made)[LiveFigures::count], const DrawnRuns& focus, const LiveChoice& choice) {
  const Run& first = *focus.seeds.front();
  const std::string statistic = !layers_with(first, "entropy_normalized").empty() ? "entropy_normalized" : "entropy";
  figures.single = directory_of(first);
  figures.name = QString::fromStdString(focus.label);
  figures.statistic = QString::fromStdString(statistic);
  made[LiveFigures::layers] = layers_figure(focus, statistic, choice.x);
  for (const char* name : kSelections)
    if (!layers_with(first, name).empty()) figures.selections << QLatin1String(name);
  figures.selection = figures.selections.contains(choice.selection) ? choice.selection : figures.selections.value(0);
  if (!figures.selection.isEmpty()) made[LiveFigures::captured] = layers_figure(focus, figures.selection.toStdString(), choice.x);
  const auto& last = first.last_statistics();
  if (!last || !recorded(*last, statistic)) return;
  made[LiveFigures::heads] = head_figure(*last, statistic, layer_mixers(first.info()));
  figures.step = last->at.step;
}

/// What a run that has just begun will measure, by its config.
void expect(LiveFigures& figures, const Run& run) {
  if (!isActive(run.info().state)) return;
  const nlohmann::json training = run.info().config.value("training", nlohmann::json::object());
  const auto every = [&](const char* setting) { return training.value(setting, int64_t{0}) > 0; };
  figures.coming[LiveFigures::gradient] = figures.coming[LiveFigures::speed] = !run.find("train/loss");
  figures.coming[LiveFigures::heads] = figures.coming[LiveFigures::layers] = figures.coming[LiveFigures::captured] =
      !run.last_statistics() && every("probe_every");
  figures.coming[LiveFigures::gap] = figures.coming[LiveFigures::domain] =
      !run.find("ood/loss") && every("evaluate_every") && !run.ood_domains().empty();
}

CurveRecipe recipe_of(const LiveChoice& choice, bool log_y, ExactParts& parts, const std::optional<std::array<double, 2>>& part) {
  CurveRecipe recipe{choice.x, choice.log_x, log_y, choice.smoothing, choice.spread, {}};
  if (part)
    recipe.values = [&parts, x = choice.x, part = *part](const Run& run, const std::string& series) {
      Line line = parts.line(run, series, x, part);
      return std::pair(std::move(line.x), std::move(line.y));
    };
  return recipe;
}

}  // namespace

DrawnSet calm_set(const DrawnSet& drawn, const DrawnRuns& focus) {
  if (drawn.size() <= kFew) return drawn;
  DrawnSet means;
  for (const DrawnRuns& each : drawn) {
    const std::string& architecture = each.seeds.front()->info().title;
    auto mean = std::find_if(means.begin(), means.end(), [&](const DrawnRuns& m) { return m.label == architecture; });
    if (mean == means.end()) {
      const Colour colour = hue_title(architecture).empty() ? each.colour : architecture_colour(architecture);
      mean = means.insert(mean, {architecture, colour, Marker::circle, Dash::solid, {}});
    }
    mean->seeds.insert(mean->seeds.end(), each.seeds.begin(), each.seeds.end());
  }
  means.push_back(focus);
  return means;
}

Figure live_loss_figure(const DrawnSet& drawn, const LiveChoice& choice, const DrawnRuns& focus, LiveParts& parts) {
  const bool few = drawn.size() <= kFew;
  CurveRecipe recipe = recipe_of(choice, choice.log_y, parts.loss, choice.loss_part);
  recipe.each_domain = choice.each_domain;
  Figure figure = loss_figure(drawn, recipe, few ? RunSet{} : focus.seeds);
  if (!few)
    for (Curve& curve : figure.curves)
      if (curve.label == "training") curve.label += " (" + focus.label + ")";
  for (const DrawnRuns& each : drawn)
    for (auto* marks : {divergence_marks, not_finite_marks})
      for (Curve& mark : marks(each, choice.x)) figure.curves.push_back(std::move(mark));
  return figure;
}

namespace {

/// Where Inspect is, as a line that can be dragged.
void mark_step(Figure& figure, const ShownRuns& shown, const LiveChoice& choice) {
  if (!choice.marked_step) return;
  for (const Run* run : shown.runs())
    if (directory_of(*run) == choice.current) {
      figure.vertical_line = place_of_step(*run, *choice.marked_step, choice.x);
      figure.vertical_label = "Inspect: step " + std::to_string(*choice.marked_step);
    }
}

/// Of generated tasks: other lengths are OOD domains, so the training domains alone would say little.
void add_answers(LiveFigures& figures, Figure (&made)[LiveFigures::count], const ShownRuns& shown, const LiveChoice& choice,
                 const CurveRecipe& recipe) {
  QStringList names{QStringLiteral("validation/accuracy"), QStringLiteral("ood/accuracy")};
  for (const QString& domain : figures.domains) names << QStringLiteral("ood/accuracy/") + domain;
  const RunSet& runs = shown.runs();
  for (const QString& name : names)
    if (std::any_of(runs.begin(), runs.end(), [series = name.toStdString()](const Run* run) { return run->find(series); }))
      figures.answers << name;
  figures.answer = figures.answers.contains(choice.answers) ? choice.answers : figures.answers.value(0);
  if (!figures.answer.isEmpty()) made[LiveFigures::accuracy] = series_figure(shown.drawn(), figures.answer.toStdString(), recipe);
}

}  // namespace

LiveFigures live_figures(const ShownRuns& shown, const LiveChoice& choice, const LiveFigures& before, LiveParts& parts) {
  LiveFigures figures;
  Figure made[LiveFigures::count];
  const DrawnSet drawn = shown.drawn();
  for (const std::string& domain : all_domains(shown.runs())) figures.domains << QString::fromStdString(domain);
  figures.chosen_domain = figures.domains.contains(choice.domain) ? choice.domain : figures.domains.value(0);
  figures.trouble = trouble(drawn);
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      if (figures.crashed.isEmpty() && run->info().state == RunState::crashed) {
        figures.crashed = directory_of(*run);
        figures.crashed_name = QString::fromStdString(each.label);
      }
  if (!drawn.empty()) {
    const DrawnRuns focus = shown.drawn_with(choice.current).value_or(drawn.front());
    const CurveRecipe plain{choice.x, choice.log_x, false, choice.smoothing, choice.spread, {}};
    made[LiveFigures::loss] = live_loss_figure(drawn, choice, focus, parts);
    mark_step(made[LiveFigures::loss], shown, choice);
    made[LiveFigures::gap] = gap_figure(drawn, plain, choice.ratio);
    const auto of_steps = [&](LiveFigures::Place place, const QString& series, const CurveRecipe& recipe) {
      const bool noisy = series == QStringLiteral("gradient_norm") || series == QStringLiteral("tokens_per_second");
      figures.by_architecture[place] = noisy && drawn.size() > kFew;
      made[place] = series_figure(noisy ? calm_set(drawn, focus) : drawn, series.toStdString(), recipe);
    };
    of_steps(LiveFigures::gradient, choice.step_series, recipe_of(choice, true, parts.gradient, choice.gradient_part));
    of_steps(LiveFigures::speed, choice.resource, recipe_of(choice, false, parts.speed, choice.speed_part));
    add_answers(figures, made, shown, choice, plain);
    if (!figures.chosen_domain.isEmpty())
      made[LiveFigures::domain] = series_figure(drawn, "ood/loss/" + figures.chosen_domain.toStdString(),
                                                {choice.x, choice.log_x, choice.log_y, choice.smoothing, choice.spread, {}});
    for (const LiveFigures::Place place :
         {LiveFigures::loss, LiveFigures::gap, LiveFigures::gradient, LiveFigures::domain, LiveFigures::speed}) {
      const bool y = place == LiveFigures::loss || place == LiveFigures::gap || place == LiveFigures::domain;
      make_symmetric(made[place], choice.symmetric_x, choice.symmetric_y && y);
    }
    add_single(figures, made, focus, choice);
    expect(figures, *focus.seeds.front());
  }
  for (int i = 0; i < LiveFigures::count; ++i) figures.figure[i] = prepare_figure(std::move(made[i]), before.figure[i]);
  return figures;
}

std::vector<std::string> all_domains(const RunSet& runs) {
  std::vector<std::string> domains;
  for (const Run* run : runs)
    for (const std::string& domain : run->ood_domains())
      if (std::find(domains.begin(), domains.end(), domain) == domains.end()) domains.push_back(domain);
  return domains;
}

QString trouble(const DrawnSet& drawn) {
  constexpr qsizetype kNamed = 3;
  QStringList lines;
  for (const RunState state : {RunState::diverged, RunState::failed, RunState::crashed}) {
    QStringList ends;
    for (const DrawnRuns& each : drawn)
      for (const Run* run : each.seeds) {
        const RunInfo& info = run->info();
        if (info.state != state) continue;
        QString line = tr("%1 at step %2").arg(QString::fromStdString(each.label)).arg(info.step);
        // What a crashed run logged last is not why it crashed.
        if (!info.message.empty() && state != RunState::crashed) line += QStringLiteral(": ") + QString::fromStdString(info.message);
        if (state == RunState::crashed) {
          const std::vector<int64_t> checkpoints = checkpoint_steps(info.directory);
          line += checkpoints.empty() ? tr(", before its first checkpoint") : tr(", resume goes on from step %1").arg(checkpoints.back());
        }
        ends << line;
      }
    if (ends.isEmpty()) continue;
    const qsizetype more = ends.size() - kNamed;
    QString line =
        QStringLiteral("%1 %2: %3").arg(ends.size()).arg(QLatin1String(to_string(state)), ends.mid(0, kNamed).join(QStringLiteral("; ")));
    if (more > 0) line += tr("; and %1 more").arg(more);
    lines << line;
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace saccade::ui

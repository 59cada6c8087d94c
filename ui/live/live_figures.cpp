#include "ui/live/live_figures.h"

#include <QStringList>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "analysis/figures/palette.h"
#include "ui/run_list.h"

namespace saccade::ui {

namespace {

void keep_training_of(const Run& run, const RunSet& among, Figure& figure) {
  const std::string label = run_looks({&run}, among).front().label;
  std::erase_if(figure.curves,
                [&](const Curve& curve) { return curve.label.ends_with(", training") && curve.label != label + ", training"; });
  for (Curve& curve : figure.curves)
    if (curve.label == "training") curve.label += " (" + label + ")";
}

}  // namespace

Figure live_loss_figure(const RunSet& runs, const LiveChoice& choice, const RunSet& among, const Run* current) {
  constexpr size_t kFewRuns = 6;
  Figure figure = loss_figure(runs, choice.x, choice.log_x, choice.log_y, among);
  if (current && runs.size() > kFewRuns) keep_training_of(*current, among, figure);
  figure = smoothed(std::move(figure), choice.smoothing);
  for (const Run* run : runs)
    if (auto mark = divergence_mark(*run, choice.x, among)) figure.curves.push_back(std::move(*mark));
  return figure;
}

Figure step_figure(const RunSet& runs, const std::string& name, bool log_y, const LiveChoice& choice, const RunSet& among) {
  Figure figure = series_figure(runs, name, choice.x, choice.log_x, log_y, among);
  for (Curve& curve : figure.curves) curve.width = 0.8;
  return smoothed(std::move(figure), choice.smoothing);
}

Figure gap_figure(const RunSet& runs, const LiveChoice& choice, const RunSet& among) {
  return difference(series_figure(runs, "ood/loss", choice.x, choice.log_x, false, among),
                    series_figure(runs, "validation/loss", choice.x, choice.log_x, false, among), "ood-gap",
                    "OOD loss minus pre-training loss", "gap (nats)");
}

std::vector<std::string> all_domains(const RunSet& runs) {
  std::vector<std::string> domains;
  for (const Run* run : runs)
    for (const std::string& domain : run->ood_domains())
      if (std::find(domains.begin(), domains.end(), domain) == domains.end()) domains.push_back(domain);
  return domains;
}

QString trouble(const RunList& list) {
  QStringList lines;
  for (const Run* run : list.visibleRuns()) {
    const RunInfo& info = run->info();
    if (info.state != RunState::diverged && info.state != RunState::failed && info.state != RunState::crashed) continue;
    QString line = QStringLiteral("%1 %2 at step %3").arg(list.label(*run), QString::fromLatin1(to_string(info.state))).arg(info.step);
    if (!info.message.empty()) line += QStringLiteral(": ") + QString::fromStdString(info.message);
    lines << line;
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace saccade::ui

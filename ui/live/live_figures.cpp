#include "ui/live/live_figures.h"

#include <QStringList>
#include <algorithm>

#include "analysis/figures/derived.h"
#include "ui/charts/run_titles.h"

namespace saccade::ui {

Figure live_loss_figure(const std::vector<const Run*>& runs, const LiveChoice& choice, const Titles& titles) {
  Figure figure = smoothed(loss_figure(runs, choice.x, choice.log_x, choice.log_y, titles), choice.smoothing);
  for (const Run* run : runs)
    if (auto mark = divergence_mark(*run, choice.x, titles)) figure.curves.push_back(std::move(*mark));
  return figure;
}

Figure gap_figure(const std::vector<const Run*>& runs, const LiveChoice& choice, const Titles& titles) {
  return difference(series_figure(runs, "ood/loss", choice.x, choice.log_x, false, titles),
                    series_figure(runs, "validation/loss", choice.x, choice.log_x, false, titles), "ood-gap",
                    "OOD loss minus pre-training loss", "gap (nats)");
}

std::vector<std::string> all_domains(const std::vector<const Run*>& runs) {
  std::vector<std::string> domains;
  for (const Run* run : runs)
    for (const std::string& domain : run->ood_domains())
      if (std::find(domains.begin(), domains.end(), domain) == domains.end()) domains.push_back(domain);
  return domains;
}

QString trouble(const std::vector<const Run*>& runs) {
  QStringList lines;
  for (const Run* run : runs) {
    const RunInfo& info = run->info();
    if (info.state != RunState::diverged && info.state != RunState::failed && info.state != RunState::crashed) continue;
    QString line = QStringLiteral("%1 %2 at step %3").arg(run_label(*run), QString::fromLatin1(to_string(info.state))).arg(info.step);
    if (!info.message.empty()) line += QStringLiteral(": ") + QString::fromStdString(info.message);
    lines << line;
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace saccade::ui

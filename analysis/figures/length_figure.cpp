#include "analysis/figures/length_figure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/comparison/length_losses.h"
#include "analysis/figures/line.h"

namespace saccade {
namespace {

bool takes(const LengthLosses::Domain& d, const std::string& domain, bool ood) {
  return domain.empty() ? d.ood == ood : d.domain == domain;
}

/// The mean over domains, whose errors are independent.
Line line_of(const LengthLosses& losses, const std::string& domain, bool last) {
  bool ood = false;
  for (const LengthLosses::Domain& d : losses.domains) ood |= d.ood;
  std::map<int64_t, std::array<double, 3>> sums;  // by length: losses, squares of errors, domains
  for (const LengthLosses::Domain& d : losses.domains)
    if (takes(d, domain, ood))
      for (const LengthLosses::At& at : d.lengths) {
        const double error = last ? at.last_error : at.error;
        std::array<double, 3>& sum = sums[at.length];
        sum[0] += last ? at.last : at.loss, sum[1] += error * error, sum[2] += 1;
      }
  Line line;
  std::vector<double> x, y, low, high;
  bool errors = true;
  for (const auto& [length, sum] : sums) {
    const double loss = sum[0] / sum[2], error = std::sqrt(sum[1]) / sum[2];
    errors &= std::isfinite(error);
    x.push_back(static_cast<double>(length)), y.push_back(loss), low.push_back(loss - error), high.push_back(loss + error);
  }
  line.x = std::move(x), line.y = std::move(y);
  if (errors) line.low = std::move(low), line.high = std::move(high);
  return line;
}

std::string text_of(const LengthLosses& losses) { return "the " + losses.split + " text of " + losses.corpus; }

/// What runs were evaluated on in common, as far as they were; `notes` say what was taken where there was a choice, and which runs have
/// other text.
std::map<const Run*, std::shared_ptr<const LengthLosses>> losses_of(const DrawnSet& drawn, std::vector<std::string>& notes) {
  std::vector<const Run*> runs;
  std::vector<std::filesystem::path> folders;
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds) runs.push_back(run), folders.push_back(run->info().directory);
  bool chosen = false;
  const auto losses = comparable_length_losses(folders, &chosen);
  std::map<const Run*, std::shared_ptr<const LengthLosses>> taken;
  std::map<std::string, std::vector<std::string>> of_text;  // the runs
  for (size_t i = 0; i < runs.size(); ++i) {
    taken[runs[i]] = losses[i];
    if (losses[i]) of_text[text_of(*losses[i])].push_back(folders[i].filename().string());
  }
  const auto most =
      std::max_element(of_text.begin(), of_text.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (chosen && most != of_text.end()) notes.push_back("Losses over length of " + most->first + ", on which most runs were evaluated.");
  for (auto text = of_text.begin(); text != of_text.end(); ++text)
    for (const std::string& run : text == most ? std::vector<std::string>() : text->second)
      notes.push_back(run + " was evaluated on other text: " + text->first + ".");
  return taken;
}

}  // namespace

Figure length_figure(const DrawnSet& drawn, const std::string& domain, bool last, Spread spread) {
  Figure figure{.id = last ? "last-loss-over-length" : "loss-over-length",
                .title = last ? "Loss of the last tokens over length" : "Loss over length"};
  figure.x = {"tokens read", true, false, {}};
  figure.y = {last ? "loss of the last tokens (nats)" : "loss (nats)", false, false, {}};
  std::set<int64_t> trained;
  const std::map<const Run*, std::shared_ptr<const LengthLosses>> taken = losses_of(drawn, figure.notes);
  for (const DrawnRuns& each : drawn) {
    std::vector<Line> lines;
    for (const Run* run : each.seeds) {
      const std::shared_ptr<const LengthLosses> losses = taken.at(run);
      if (!losses) continue;
      Line line = line_of(*losses, domain, last);
      if (line.x.empty()) continue;
      lines.push_back(std::move(line));
      trained.insert(losses->trained_length);
      std::string note = "run " + run->info().directory.filename().string() + ": step " + std::to_string(losses->step) + ", " +
                         losses->split + " text of " + losses->corpus + ", documents of at least " + std::to_string(losses->least_tokens) +
                         " tokens";
      if (!losses->not_read.empty()) note += ", positions end at " + std::to_string(losses->trained_length);
      figure.provenance.push_back(note);
    }
    if (lines.empty()) continue;
    const size_t seeds = lines.size();
    Line line = seeds == 1 ? std::move(lines.front()) : mean_of(lines, spread);
    Curve curve{each.label, std::move(line.x), std::move(line.y), each.colour, each.dash, each.marker};
    if (each.seeds.size() > 1) curve.label += ", mean of " + std::to_string(seeds);
    curve.low = std::move(line.low), curve.high = std::move(line.high);
    figure.curves.push_back(std::move(curve));
  }
  if (trained.size() == 1) {
    figure.vertical_line = static_cast<double>(*trained.begin());
    figure.vertical_label = "trained length " + std::to_string(*trained.begin());
  }
  return figure;
}

}  // namespace saccade

#include "analysis/studies/report/equal_loss_table.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace saccade {

namespace {

std::vector<Trajectory> trajectories_of(const CellNumbers& cell) {
  std::vector<Trajectory> list;
  for (const SeedNumbers& seed : cell.seeds) list.push_back(seed.trajectory);
  return list;
}

/// Why a cell has no losses there: "avey-10m: had come to 3.3738 at its end", "…: was at 3.2580 at its first point already"; empty where
/// every seed has passed it.
std::string left_out(const CellNumbers& cell, double loss) {
  for (const SeedNumbers& seed : cell.seeds) {
    const std::vector<double>& passed = seed.trajectory.pretraining;
    const std::string of = cell.name + ", seed " + std::to_string(seed.seed) + ": ";
    if (passed.empty()) return of + "was not evaluated.";
    if (const double lowest = *std::min_element(passed.begin(), passed.end()); lowest > loss)
      return of + "had come to " + format("%.4f", lowest) + " at its end.";
    if (passed.front() < loss)
      return of + "was at " + format("%.4f", passed.front()) + " already at the first point that is read" +
             (seed.branch_ends ? "; an earlier branch would show it." : ".");
  }
  return "";
}

}  // namespace

std::optional<double> equal_loss(const std::vector<CellNumbers>& cells) {
  std::vector<std::vector<Trajectory>> groups;
  for (const CellNumbers& cell : cells) groups.push_back(trajectories_of(cell));
  return widest_common_loss(groups);
}

std::optional<double> equal_loss(const CellNumbers& a, const CellNumbers& b) {
  std::vector<Trajectory> both = trajectories_of(a);
  for (const SeedNumbers& seed : b.seeds) both.push_back(seed.trajectory);
  return lowest_common_loss(both);
}

std::string read_from(const CellNumbers& cell) {
  const auto ends = std::count_if(cell.seeds.begin(), cell.seeds.end(), [](const SeedNumbers& s) { return s.branch_ends; });
  if (cell.seeds.empty()) return "–";
  return static_cast<size_t>(ends) == cell.seeds.size() ? "branch ends" : ends == 0 ? "mid-schedule" : "partly mid-schedule";
}

std::string equal_source(const SeedNumbers& seed) {
  std::string steps;
  for (const double step : seed.trajectory.step) steps += (steps.empty() ? "" : " ") + format("%.0f", step);
  if (!seed.branch_ends) steps = "evaluations up to " + format("%.0f", seed.trajectory.step.empty() ? 0 : seed.trajectory.step.back());
  const std::string split = seed.branch_ends ? seed.split : "validation";  // branches are evaluated anew where ends are
  return "runs/" + seed.run + ", " + (seed.branch_ends ? "branch ends at steps " : "") + steps + ", " + split + " split";
}

std::vector<std::string> equal_sources(const CellNumbers& cell) {
  std::vector<std::string> sources;
  for (const SeedNumbers& seed : cell.seeds) sources.push_back(equal_source(seed));
  return sources;
}

std::string equal_split(const std::vector<CellNumbers>& cells) {
  std::set<std::string> splits;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds) splits.insert(seed.branch_ends ? seed.split : "validation");
  return splits.size() > 1 ? "validation or test" : splits.empty() ? "validation" : *splits.begin();
}

std::string pretraining_words(const LossWords& words, const std::string& split) {
  if (words.pretraining.kind == PretrainingLoss::Kind::train) return describe(words.pretraining);
  const std::string each =
      words.pretraining.kind == PretrainingLoss::Kind::weighted ? "weighted by their tokens in training" : "each domain counting the same";
  return "mean loss of the training domains on the " + split + " split, " + each;
}

ReportTable equal_loss_table(const std::vector<CellNumbers>& cells, const LossWords& words_of) {
  const std::optional<double> loss = equal_loss(cells);
  const std::string at = loss ? format("%.4f", *loss) : "equal";
  ReportTable table{"equal-loss",
                    "OOD loss at equal pre-training loss",
                    {"", "seeds", "OOD loss at " + at, "against first", "read from"},
                    {},
                    {kIntervals, "Pre-training loss: " + pretraining_words(words_of, equal_split(cells)) + "; all in " + words_of.unit +
                                     ". Equal: the lowest that the first row and the most others have passed with all seeds, interpolated "
                                     "between branch ends, or, mid-schedule, between evaluations at a learning rate that had not fallen "
                                     "yet."}};
  if (!loss)
    table.notes.emplace_back("There is no pre-training loss that the first row and another have passed, so none at which to compare.");
  double first = std::nan("");
  for (const CellNumbers& cell : cells) {
    const std::string why = loss ? left_out(cell, *loss) : "";
    if (!why.empty()) table.notes.push_back("Left out: " + why);
    const Repeated r = repeated(!loss || !why.empty() ? std::vector<double>{} : values_of(cell, [&](const SeedNumbers& s) {
      return ood_at(s.trajectory, *loss).value_or(std::nan(""));
    }));
    if (&cell == &cells.front()) first = r.mean;
    ReportEntry difference{format("%+.4f", r.mean - first), r.mean - first, equal_sources(cell)};
    table.rows.push_back({words(cell.name), count(r.count), entry_of(r, equal_sources(cell)), difference, words(read_from(cell))});
  }
  return table;
}

}  // namespace saccade

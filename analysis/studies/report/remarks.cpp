#include "analysis/studies/report/remarks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/look_ahead.h"
#include "analysis/figures/count_text.h"

namespace saccade {
namespace {

/// Where nothing was learned, or the setting does not matter, the best value is inside its grid by chance.
constexpr double kFlat = 0.01;

/// Whether two cells differ in nothing but their names: a setting that another one makes idle.
bool is_same_config(const StudyView& view, size_t a, size_t b) {
  const std::vector<size_t>&of_a = view.views[a].wanted, &of_b = view.views[b].wanted;
  return !of_a.empty() && !of_b.empty() && view.wanted[of_a.front()].run.identity == view.wanted[of_b.front()].run.identity;
}

/// What the journals of runs that count here have lost, as `saccade compare` warns of it.
void add_lost(std::vector<std::string>& remarks, const StudyView& view, const std::vector<CellNumbers>& cells) {
  std::map<std::string, std::string> lost;
  for (const WantedRun& wanted : view.wanted)
    if (wanted.there && wanted.there->ended()) lost[wanted.name] = wanted.there->lost;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds) lost[seed.run] = seed.summary.lost;
  for (const auto& [run, what] : lost)
    if (!what.empty()) remarks.push_back("runs/" + run + ": " + what + ".");
}

/// Domains whose loss at the end is NaN or infinite.
void add_not_finite(std::vector<std::string>& remarks, const CellNumbers& cell) {
  for (const SeedNumbers& seed : cell.seeds) {
    std::string domains;
    for (const auto& [name, loss] : seed.end.domains)
      if (!std::isfinite(loss)) domains += (domains.empty() ? "" : ", ") + name;
    if (!domains.empty())
      remarks.push_back("runs/" + seed.run + ": the loss of " + domains + " at its end is not finite, so no mean has it.");
  }
}

}  // namespace

std::vector<std::string> remarks_of(const StudyView& view, const std::vector<CellNumbers>& cells, const std::vector<LikeCells>& groups) {
  std::vector<std::string> remarks;
  for (const std::string& problem : view.problems) remarks.push_back("Left out, for it cannot be read: " + problem + ".");
  add_lost(remarks, view, cells);
  for (const CellNumbers& cell : cells) add_not_finite(remarks, cell);
  if (!view.complete()) remarks.push_back("The study is not complete: runs are missing from these numbers.");
  std::vector<const CellNumbers*> untuned, edge;
  bool mid_schedule = false, one_seed = false;
  for (const CellNumbers& cell : cells) {
    if (cell.tuning.state == Tuning::State::untuned) untuned.push_back(&cell);
    if (cell.tuning.state == Tuning::State::edge) edge.push_back(&cell);
    mid_schedule |= !cell.seeds.empty() && read_from(cell) != "branch ends";
    one_seed |= cell.seeds.size() == 1;
    if (spread_of(cell.tuning) < kFlat)
      remarks.push_back(cell.name + ": all values of " + cell.tuning.setting +
                        " end within 1 % of each other, so that the best of them says little.");
    if (cell.missing > 0)
      remarks.push_back(cell.name + ": " + counted(cell.missing, "seed is", "seeds are") + " missing (not ended, or diverged).");
  }
  if (!untuned.empty())
    remarks.push_back(std::to_string(untuned.size()) + " of " + std::to_string(cells.size()) + (untuned.size() == 1 ? " is" : " are") +
                      " untuned: a ranking may be the learning rate's.");
  for (const CellNumbers* cell : edge) remarks.push_back(cell->name + ": " + describe(cell->tuning) + ".");
  for (const StudyCell& cell : view.cells)
    if (!cell.short_of.empty()) remarks.push_back(cell.name + " " + cell.short_of + ".");
  if (view.study.tuning && (view.study.evaluation.tokens == 0 || view.study.evaluation.split != "test"))
    remarks.push_back("In-domain losses are of the validation split, which chose the values of " + view.study.tuning->setting + ".");
  for (size_t i = 0; i < view.cells.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (is_same_config(view, i, j))
        remarks.push_back(view.cells[j].name + " and " + view.cells[i].name +
                          " are one config: their rows are of the same runs, and say nothing of a difference.");
  std::vector<std::string> ahead;
  for (size_t i = 0; i < view.cells.size(); ++i)
    if (!view.views[i].wanted.empty() && !looks_ahead(to_json(view.wanted[view.views[i].wanted.front()].run.config)).empty())
      ahead.push_back(view.cells[i].name);
  if (!ahead.empty() && ahead.size() < view.cells.size())
    for (const std::string& name : ahead)
      remarks.push_back(name + " looks ahead, so its losses are no causal model's, which the others' are.");
  if (groups.size() > 1) {
    std::string names;
    for (const LikeCells& group : groups) names += (names.empty() ? "" : ", ") + group.name;
    remarks.push_back("Not all rows are trained and tested on the same: losses are compared within each of " + names + " alone.");
  }
  const auto is_in_bits = [](const LikeCells& group) { return group.words_of.unit != LossWords{}.unit; };
  if (std::any_of(groups.begin(), groups.end(), is_in_bits))
    remarks.push_back(
        "The rows have different tokenizers, whose losses in nats per token do not compare: rows are compared in bits per byte of the "
        "text, without errors over sequences, which they do not share. Of the same number of tokens they read different lengths of text.");
  const auto is_asked = [&](const LikeCells& group) { return group.words_of.pretraining.kind == view.study.pretraining.kind; };
  if (!std::all_of(groups.begin(), groups.end(), is_asked))
    remarks.emplace_back("In bits per byte the pre-training loss is that of validation, each training domain counting the same.");
  if (view.study.pretraining.kind != PretrainingLoss::Kind::validation && std::any_of(groups.begin(), groups.end(), is_asked))
    remarks.push_back("Pre-training loss, at which OOD losses are equal: " + describe(view.study.pretraining) + ".");
  if (one_seed) remarks.push_back("Some rows have one seed: their error is not known.");
  if (mid_schedule) remarks.push_back("Losses at equal pre-training loss are read mid-schedule where no branches cool down.");
  return remarks;
}

}  // namespace saccade

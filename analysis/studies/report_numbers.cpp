#include "analysis/studies/report_numbers.h"

#include <algorithm>
#include <cmath>

#include "analysis/runs/run_info.h"
#include "analysis/studies/same_data.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// Pre-training loss falls along a trajectory.
Trajectory of_ends(std::vector<RunEnd> ends) {
  std::erase_if(ends, [](const RunEnd& e) { return !std::isfinite(e.validation) || !std::isfinite(e.ood); });
  std::sort(ends.begin(), ends.end(), [](const RunEnd& a, const RunEnd& b) { return a.step < b.step; });
  Trajectory t;
  for (const RunEnd& end : ends) {
    t.pretraining.push_back(end.validation);
    t.ood.push_back(end.ood);
    t.step.push_back(static_cast<double>(end.step));
  }
  return t;
}

std::array<Course, 3> courses_of_ends(std::vector<RunEnd> ends) {
  std::erase_if(ends, [](const RunEnd& e) { return !std::isfinite(e.validation); });
  std::sort(ends.begin(), ends.end(), [](const RunEnd& a, const RunEnd& b) { return a.step < b.step; });
  std::array<Course, 3> courses;
  for (const RunEnd& end : ends) {
    const std::array<double, 3> spent{static_cast<double>(end.tokens), end.flops, end.seconds};
    for (size_t i = 0; i < courses.size(); ++i) {
      Course& course = courses[i];
      if (!std::isfinite(spent[i]) || (!course.spent.empty() && spent[i] <= course.spent.back())) continue;
      course.spent.push_back(spent[i]), course.pretraining.push_back(end.validation), course.ood.push_back(end.ood);
    }
  }
  return courses;
}

/// A trajectory, and courses, of the ends of a run and its branches.
void take_ends(SeedNumbers& seed, const std::vector<RunEnd>& ends) {
  seed.trajectory = of_ends(ends);
  seed.courses = courses_of_ends(ends);
}

void take_evaluation(SeedNumbers& seed, const Json& evaluation) {
  seed.losses = std::make_shared<const SequenceLosses>(parse_sequence_losses(evaluation, "the evaluation of " + seed.run));
  for (const auto& [name, domain] : seed.losses->domains)
    if (domain.ood) seed.end.domains[name] = domain.loss;
  const LossAndError inside = mean_over_domains(*seed.losses, false), outside = mean_over_domains(*seed.losses, true);
  seed.end.validation = inside.loss, seed.validation_error = inside.error;
  seed.end.ood = outside.loss, seed.ood_error = outside.error;
  seed.split = seed.losses->split;
}

/// In place of what branches recorded at their ends.
void take_branch_ends(StudyEvaluations& evaluations, SeedNumbers& seed, int64_t tokens) {
  if (!seed.branch_ends) return;
  std::vector<RunEnd> ends{seed.end};
  for (const RunEnd& recorded : seed.summary.branches) {
    SeedNumbers branch;
    branch.end = recorded;
    take_evaluation(branch, evaluations.of({seed.run, recorded.branch, recorded.step}, tokens));
    ends.push_back(branch.end);
    seed.branches[recorded.step] = branch.losses;
  }
  take_ends(seed, ends);
}

/// Its checkpoints' losses in place of what training recorded. Why they cannot be had, or nothing.
std::string evaluate_anew(StudyEvaluations& evaluations, SeedNumbers& seed, int64_t tokens) {
  try {
    take_evaluation(seed, evaluations.of({seed.run, "", seed.summary.step}, tokens));
    take_branch_ends(evaluations, seed, tokens);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// Every run that can be evaluated; the others are taken out of their cells.
void evaluate_all(const StudyView& view, ReportNumbers& numbers, StudyEvaluations& evaluations) {
  bool any = false;
  for (CellNumbers& cell : numbers.cells) {
    std::erase_if(cell.seeds, [&](SeedNumbers& seed) {
      const std::string why = evaluate_anew(evaluations, seed, numbers.tokens);
      if (!why.empty()) numbers.left_out.push_back(why);
      return !why.empty();
    });
    any = any || !cell.seeds.empty();
  }
  if (!any && !numbers.left_out.empty())
    throw DataError("no run of this study can be evaluated on the " + view.study.evaluation.split + " split; " + numbers.left_out.front());
}

SeedNumbers seed_numbers(const StudyView& view, const WantedRun& wanted) {
  SeedNumbers seed;
  seed.seed = wanted.run.seed, seed.run = wanted.name, seed.summary = *wanted.there, seed.end = wanted.there->end;
  seed.split = "validation", seed.validation_error = seed.end.validation_error, seed.ood_error = seed.end.ood_error;
  seed.branch_ends = !wanted.there->branches.empty();
  if (seed.branch_ends) {
    std::vector<RunEnd> ends = wanted.there->branches;
    ends.push_back(wanted.there->end);
    take_ends(seed, ends);
  } else if (evaluated_as_recorded(view.study.evaluation, wanted.run.config.data)) {
    const Run run(view.directory / "runs" / wanted.name);
    seed.trajectory = trajectory(run);
    for (size_t i = 0; i < seed.courses.size(); ++i) seed.courses[i] = course(run, static_cast<Spent>(i));
  }
  return seed;
}

std::vector<CellNumbers> recorded(const StudyView& view) {
  std::vector<CellNumbers> cells;
  for (size_t i = 0; i < view.cells.size(); ++i) {
    CellNumbers cell{i, view.cells[i].name, {}, view.views[i].tuning, 0};
    for (const size_t at : view.views[i].wanted) {
      const WantedRun& wanted = view.wanted[at];
      if (view.study.tuning && (!cell.tuning.best || wanted.run.tuned != cell.tuning.best)) continue;
      if (wanted.status == WantedRun::Status::finished)
        cell.seeds.push_back(seed_numbers(view, wanted));
      else
        ++cell.missing;
    }
    std::sort(cell.seeds.begin(), cell.seeds.end(), [](const SeedNumbers& a, const SeedNumbers& b) { return a.seed < b.seed; });
    cells.push_back(std::move(cell));
  }
  return cells;
}

/// Of the differences of two runs of one seed, at their ends and at those of their branches; 0 where nothing pairs.
double largest_error(const SeedNumbers& mine, const SeedNumbers& other) {
  double largest = 0;
  const auto look = [&](const SequenceLosses& a, const SequenceLosses& b) {
    for (const bool ood : {false, true})
      if (const double error = paired_difference(a, b, ood).error; error > largest) largest = error;
  };
  if (mine.losses && other.losses) look(*mine.losses, *other.losses);
  for (const auto& [step, losses] : mine.branches)
    if (const auto at = other.branches.find(step); at != other.branches.end()) look(*losses, *at->second);
  return largest;
}

/// Of all differences to the run of the same seed of the first cell of the same data.
double largest_error(const std::vector<SameData>& groups, const std::vector<CellNumbers>& cells) {
  double largest = 0;
  for (const SameData& group : groups)
    for (const size_t cell : group.cells)
      for (const SeedNumbers& mine : cells[cell].seeds)
        for (const SeedNumbers& other : cells[group.cells.front()].seeds)
          if (mine.seed == other.seed && cell != group.cells.front()) largest = std::max(largest, largest_error(mine, other));
  return largest;
}

bool all_whole(const std::vector<CellNumbers>& cells, int64_t tokens) {
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds)
      if (!is_whole_split(*seed.losses, tokens)) return false;
  return true;
}

}  // namespace

std::string SeedNumbers::source() const { return "runs/" + run + ", step " + std::to_string(end.step) + ", " + split + " split"; }

ReportNumbers report_numbers(const StudyView& view, StudyEvaluations& evaluations) {
  const StudyEvaluation& wish = view.study.evaluation;
  ReportNumbers numbers{recorded(view), wish.tokens, false};
  const std::vector<SameData> groups = same_data(view);
  while (numbers.tokens > 0) {
    evaluate_all(view, numbers, evaluations);
    numbers.whole_split = all_whole(numbers.cells, numbers.tokens);
    const double error = largest_error(groups, numbers.cells);
    if (wish.paired_error == 0 || numbers.whole_split || error <= wish.paired_error) break;
    numbers.tokens = tokens_for_error(numbers.tokens, error, wish.paired_error);
  }
  return numbers;
}

EvaluatedStudy evaluate_study(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds) {
  StudyEvaluations evaluations(view, say, seconds);
  EvaluatedStudy evaluated;
  try {
    evaluated.left_out = report_numbers(view, evaluations).left_out;
    evaluated.complete = true;
  } catch (const StudyEvaluations::TimeIsUp&) {
  }
  evaluated.made = evaluations.made(), evaluated.files = evaluations.files();
  return evaluated;
}

}  // namespace saccade

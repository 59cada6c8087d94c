#include "analysis/studies/report/numbers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/runs/run_info.h"
#include "analysis/studies/same_data.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using Ends = std::vector<ReportEnd>;

/// Pre-training loss falls along a trajectory. Both losses of an end are told by functions.
template <class Inside, class Outside>
Trajectory trajectory_of(const Ends& ends, Inside inside, Outside outside) {
  Trajectory t;
  for (const ReportEnd& end : ends) {
    if (!std::isfinite(inside(end)) || !std::isfinite(outside(end))) continue;
    t.pretraining.push_back(inside(end));
    t.ood.push_back(outside(end));
    t.step.push_back(static_cast<double>(end.at.step));
  }
  return t;
}

template <class Inside, class Outside>
std::array<Course, 3> courses_of(const Ends& ends, Inside inside, Outside outside) {
  std::array<Course, 3> courses;
  for (const ReportEnd& end : ends) {
    if (!std::isfinite(inside(end))) continue;
    const std::array<double, 3> spent{static_cast<double>(end.at.tokens), end.at.flops, end.at.seconds};
    for (size_t i = 0; i < courses.size(); ++i) {
      Course& course = courses[i];
      if (!std::isfinite(spent[i]) || (!course.spent.empty() && spent[i] <= course.spent.back())) continue;
      course.spent.push_back(spent[i]), course.pretraining.push_back(inside(end)), course.ood.push_back(outside(end));
    }
  }
  return courses;
}

/// Trajectories, and courses, of the ends of a run and its branches.
void take_ends(SeedNumbers& seed, Ends ends) {
  std::sort(ends.begin(), ends.end(), [](const ReportEnd& a, const ReportEnd& b) { return a.at.step < b.at.step; });
  const auto validation = [](const ReportEnd& e) { return e.at.validation; };
  const auto ood = [](const ReportEnd& e) { return e.at.ood; };
  const auto validation_bits = [](const ReportEnd& e) { return e.bits.validation; };
  const auto ood_bits = [](const ReportEnd& e) { return e.bits.ood; };
  seed.trajectory = trajectory_of(
      ends, [](const ReportEnd& e) { return e.pretraining; }, ood);
  seed.courses = courses_of(ends, validation, ood);
  seed.in_bits = {trajectory_of(ends, validation_bits, ood_bits), courses_of(ends, validation_bits, ood_bits)};
}

/// By the tokens that domains have in training; NaN where one's are not known.
double weighted(const SequenceLosses& losses, const std::map<std::string, double>& tokens) {
  double sum = 0, total = 0;
  for (const auto& [name, domain] : losses.domains) {
    if (domain.ood) continue;
    const auto at = tokens.find(name);
    if (at == tokens.end()) return std::nan("");
    sum += at->second * domain.loss, total += at->second;
  }
  return sum / total;
}

std::shared_ptr<const SequenceLosses> parsed(const Json& evaluation, const std::string& run) {
  return std::make_shared<const SequenceLosses>(parse_sequence_losses(evaluation, "the evaluation of " + run));
}

/// In place of what was recorded there; a training loss stays.
void take_losses(ReportEnd& end, const SequenceLosses& losses, const SeedNumbers& seed, PretrainingLoss::Kind kind) {
  end.at.validation = mean_over_domains(losses, false).loss, end.at.ood = mean_over_domains(losses, true).loss;
  end.bits = bits_of(losses);
  if (kind == PretrainingLoss::Kind::validation) end.pretraining = end.at.validation;
  if (kind == PretrainingLoss::Kind::weighted) end.pretraining = weighted(losses, seed.domain_tokens);
}

void take_evaluation(SeedNumbers& seed, std::shared_ptr<const SequenceLosses> losses) {
  seed.losses = std::move(losses);
  for (const auto& [name, domain] : seed.losses->domains)
    if (domain.ood) seed.end.domains[name] = domain.loss;
  const LossAndError inside = mean_over_domains(*seed.losses, false), outside = mean_over_domains(*seed.losses, true);
  seed.end.validation = inside.loss, seed.validation_error = inside.error;
  seed.end.ood = outside.loss, seed.ood_error = outside.error;
  seed.bits = bits_of(*seed.losses);
  seed.split = seed.losses->split;
}

/// In place of what a run and its branches recorded at their ends.
void take_branch_ends(StudyEvaluations& evaluations, SeedNumbers& seed, int64_t tokens, PretrainingLoss::Kind kind) {
  if (!seed.branch_ends) return;
  Ends ends = seed.ends;
  for (ReportEnd& end : ends) {
    const bool own = end.at.branch.empty();
    const auto losses = own ? seed.losses : parsed(evaluations.of({seed.run, end.at.branch, end.at.step}, tokens), seed.run);
    take_losses(end, *losses, seed, kind);
    if (!own) seed.branches[end.at.step] = losses;
  }
  take_ends(seed, ends);
}

/// Its checkpoints' losses in place of what training recorded. Why they cannot be had, or nothing.
std::string evaluate_anew(StudyEvaluations& evaluations, SeedNumbers& seed, int64_t tokens, PretrainingLoss::Kind kind) {
  try {
    take_evaluation(seed, parsed(evaluations.of({seed.run, "", seed.summary.step}, tokens), seed.run));
    take_branch_ends(evaluations, seed, tokens, kind);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// Of every run and the branches that are read.
std::vector<EndOfRun> ends_of(const ReportNumbers& numbers) {
  std::vector<EndOfRun> ends;
  for (const CellNumbers& cell : numbers.cells)
    for (const SeedNumbers& seed : cell.seeds) {
      ends.push_back({seed.run, "", seed.summary.step});
      for (const ReportEnd& end : seed.ends)
        if (seed.branch_ends && !end.at.branch.empty()) ends.push_back({seed.run, end.at.branch, end.at.step});
    }
  return ends;
}

/// Every run that can be evaluated; the others are taken out of their cells.
void evaluate_all(const StudyView& view, ReportNumbers& numbers, StudyEvaluations& evaluations) {
  bool any = false;
  evaluations.make(ends_of(numbers), numbers.tokens);
  for (CellNumbers& cell : numbers.cells) {
    std::erase_if(cell.seeds, [&](SeedNumbers& seed) {
      const std::string why = evaluate_anew(evaluations, seed, numbers.tokens, view.study.pretraining.kind);
      if (!why.empty()) numbers.left_out.push_back(why);
      return !why.empty();
    });
    any = any || !cell.seeds.empty();
  }
  if (!any && !numbers.left_out.empty())
    throw DataError("no run of this study can be evaluated on the " + view.study.evaluation.split + " split; " + numbers.left_out.front());
}

/// What a run, or a branch of it, recorded at its end.
ReportEnd recorded_end(const Run& run, const RunEnd& at, const PretrainingLoss& loss) {
  require_recorded({&run}, loss);
  const Series pretraining = pretraining_series(run, loss);
  return {at, pretraining.value.empty() ? std::nan("") : pretraining.value.back(), bits_of(run.last_evaluation())};
}

std::map<std::string, double> domain_tokens(const RunInfo& info) {
  std::map<std::string, double> tokens;
  const Json counts = info.provenance.value("domain_tokens", Json::object());
  for (const auto& [name, count] : counts.items())
    if (count.is_number()) tokens[name] = count;
  return tokens;
}

SeedNumbers seed_numbers(const StudyView& view, const WantedRun& wanted) {
  const std::filesystem::path directory = view.directory / "runs" / wanted.name;
  const Run run(directory);
  const PretrainingLoss& loss = view.study.pretraining;
  SeedNumbers seed;
  seed.seed = wanted.run.seed, seed.run = wanted.name, seed.summary = *wanted.there, seed.end = wanted.there->end;
  seed.split = "validation", seed.validation_error = seed.end.validation_error, seed.ood_error = seed.end.ood_error;
  seed.branch_ends = !wanted.there->branches.empty();
  seed.domain_tokens = domain_tokens(run.info());
  seed.ends.push_back(recorded_end(run, wanted.there->end, loss));
  seed.bits = seed.ends.front().bits;
  seed.summary.lost = what_is_lost(run);  // read just now: index.json does not know of bytes that changed by themselves
  for (const RunEnd& at : wanted.there->branches) {
    const Run branch(directory / at.branch);
    seed.ends.push_back(recorded_end(branch, at, loss));
    if (const std::string lost = what_is_lost(branch); !lost.empty())
      seed.summary.lost += (seed.summary.lost.empty() ? "" : "; ") + at.branch + ": " + lost;
  }
  if (seed.branch_ends) {
    take_ends(seed, seed.ends);
  } else if (evaluated_as_recorded(view.study.evaluation, wanted.run.config.data)) {
    seed.trajectory = trajectory(run, "", loss);
    seed.in_bits = course_in_bits(run);
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
    if (a.text != b.text) return;  // of other tokenizers: nothing pairs
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

std::set<int64_t> seeds_of(const CellNumbers& cell) {
  std::set<int64_t> seeds;
  for (const SeedNumbers& seed : cell.seeds) seeds.insert(seed.seed);
  return seeds;
}

/// Where rows of a study that asks for no evaluations are compared: on as many tokens as its runs evaluated at their ends, and then as
/// many as the error asks for. 0 where no two rows have a seed in common, and for generated tasks, of which there is no end and whose
/// losses are those of a few answers.
int64_t tokens_to_begin_with(const StudyView& view, const std::vector<SameData>& groups, const std::vector<CellNumbers>& cells) {
  bool compared = false;
  for (const SameData& group : groups)
    for (const size_t cell : group.cells)
      for (const int64_t seed : seeds_of(cells[cell]))
        compared |= cell != group.cells.front() && seeds_of(cells[group.cells.front()]).contains(seed);
  int64_t tokens = 0;
  for (const WantedRun& wanted : view.wanted) {
    const RunConfig& config = wanted.run.config;
    if (!config.data.task.empty()) return 0;
    const int64_t length = config.data.sequence_length, at_end = final_evaluation_sequences(config, config.training.steps);
    tokens = std::max(tokens, length * (at_end > 0 ? at_end : evaluation_sequences(config.training, length)));
  }
  return compared ? tokens : 0;
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
  ReportNumbers numbers{recorded(view), 0, false};
  const std::vector<SameData> groups = same_data(view);
  const StudyEvaluation& wish = view.study.evaluation;
  const bool asked = wish.tokens != StudyEvaluation::kAsErrorAsks;
  for (int64_t tokens = asked ? wish.tokens : tokens_to_begin_with(view, groups, numbers.cells); tokens > 0;) {
    ReportNumbers more = numbers;
    more.tokens = tokens;
    try {
      evaluate_all(view, more, evaluations);
    } catch (const Error& error) {
      if (asked) throw;
      more.left_out = {error.what()};
    }
    if (!asked && !more.left_out.empty()) {  // nobody asked for them: no run is left out for want of one
      numbers.short_of = more.left_out.front();
      break;
    }
    numbers = std::move(more);
    numbers.whole_split = all_whole(numbers.cells, tokens);
    const double error = largest_error(groups, numbers.cells);
    if (wish.paired_error == 0 || numbers.whole_split || error <= wish.paired_error) break;
    tokens = tokens_for_error(tokens, error, wish.paired_error);
  }
  return numbers;
}

EvaluatedStudy evaluate_study(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                              const StudyWorkers& workers) {
  StudyEvaluations evaluations(view, say, seconds, workers);
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

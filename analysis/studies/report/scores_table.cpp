#include "analysis/studies/report/scores_table.h"

#include <algorithm>
#include <cmath>

#include "analysis/studies/report/entries.h"
#include "analysis/tasks/score_tests.h"

namespace saccade {
namespace {

using Seeds = std::vector<SeedScore>;

std::vector<double> values_of(const Seeds& seeds) {
  std::vector<double> values;
  for (const SeedScore& seed : seeds) values.push_back(100 * seed.value);
  return values;
}

double error_of(const Seeds& seeds) {
  std::vector<double> errors;
  for (const SeedScore& seed : seeds) errors.push_back(100 * seed.error);
  return mean(errors);
}

std::vector<std::string> sources_of(const Seeds& seeds, const std::string& task) {
  std::vector<std::string> sources;
  for (const SeedScore& seed : seeds) {
    std::string steps;
    for (const int64_t step : seed.steps) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
    sources.push_back("runs/" + seed.run + ", step " + steps + ", " + task);
  }
  return sources;
}

ReportEntry percent(const Repeated& r, std::vector<std::string> sources) {
  std::string text = format("%.2f", r.mean);
  if (r.deviation) text += " ± " + format("%.2f", *r.deviation) + " [±" + format("%.2f", *r.half_95) + "]";
  return {text, r.mean, std::move(sources), r};
}

/// Of every cell, in the tests' form.
std::vector<ScoredGroup> groups_of(const std::vector<Seeds>& cells) {
  std::vector<ScoredGroup> groups;
  for (const Seeds& seeds : cells) {
    ScoredGroup& group = groups.emplace_back();
    for (const SeedScore& seed : seeds)
      group.seeds.push_back(
          {seed.seed, seed.value, [&seed] {
             return seed.right.empty() ? std::vector<AnsweredItems>() : std::vector{AnsweredItems{seed.items, seed.right}};
           }});
  }
  return groups;
}

void add_rows(ReportTable& table, const StudyView& view, const TaskScores& scores) {
  const ScoreRanking ranking = rank_scores(groups_of(scores.cells));
  const auto p = [](const std::optional<double>& v) { return ReportEntry{v ? format("%.3g", *v) : "–", v.value_or(std::nan("")), {}}; };
  for (size_t i = 0; i < scores.cells.size(); ++i) {
    const Seeds& seeds = scores.cells[i];
    const ScoreTest tested = ranking.highest ? ranking.tests[i] : ScoreTest{};
    const std::vector<std::string> sources = sources_of(seeds, scores.task);
    const double error = error_of(seeds), difference = tested.test.difference.count > 0 ? 100 * tested.test.difference.mean : std::nan("");
    ReportEntry items = count(scores.items);
    if (scores.partial) items.text += ", not all";
    table.rows.push_back({words(view.cells[i].name),
                          words(scores.task),
                          words(scores.metric),
                          items,
                          count(static_cast<int64_t>(seeds.size())),
                          percent(repeated(values_of(seeds)), sources),
                          {format("%.2f", error), error, sources},
                          {format("%.2f", 100 * scores.chance), 100 * scores.chance, {}},
                          {format("%+.2f", difference), difference, sources},
                          p(tested.test.p),
                          p(tested.test.p_holm),
                          words(tested.over),
                          words(ranking.best() == i ? "best" : "")});
  }
}

/// Of each seed that has a score on all tasks their unweighted mean.
TaskScores average_of(const std::vector<TaskScores>& tasks) {
  const auto n = static_cast<double>(tasks.size());
  TaskScores average{"average of " + std::to_string(tasks.size()) + " tasks", "", 0, 0, false, {}};
  average.cells.resize(tasks.front().cells.size());
  for (const TaskScores& task : tasks)
    average.chance += task.chance / n, average.items += task.items, average.partial = average.partial || task.partial;
  for (size_t cell = 0; cell < average.cells.size(); ++cell)
    for (const SeedScore& first : tasks.front().cells[cell]) {
      SeedScore seed{first.seed, first.run, first.steps, 0, 0, 0, {}, {}};
      size_t found = 0;
      for (const TaskScores& task : tasks)
        for (const SeedScore& one : task.cells[cell])
          if (one.run == first.run) ++found, seed.value += one.value / n, seed.error += one.error * one.error / n / n;
      seed.error = std::sqrt(seed.error);
      if (found == tasks.size()) average.cells[cell].push_back(std::move(seed));
    }
  return average;
}

/// What the models could not read whole.
void add_cut(ReportTable& table, const StudyView& view, const TaskScores& scores) {
  std::string cut;
  for (size_t i = 0; i < scores.cells.size(); ++i) {
    int64_t most = 0;
    for (const SeedScore& seed : scores.cells[i]) most = std::max(most, seed.cut);
    if (most > 0) cut += (cut.empty() ? "" : ", ") + view.cells[i].name + " " + std::to_string(most);
  }
  if (!cut.empty())
    table.notes.push_back("Items of " + scores.task + " that lost their beginning, for the model reads no more: " + cut + ".");
}

}  // namespace

std::optional<ReportTable> scores_table(const StudyView& view, const StudyScores& scores) {
  if (scores.tasks.empty()) return {};
  ReportTable table{
      "scores",
      "Scores on tasks",
      {"", "task", "metric", "items", "seeds", "score (%)", "± items (%)", "chance (%)", "to the highest (%)", "p", "p (Holm)",
       "tested over", "best"},
      {},
      {"Share of the items that are right, " + std::string(kIntervals),
       "± items: standard error over the items, of one seed; more seeds do not lessen it. Chance: what guessing gets.",
       "To the highest: difference to the line with the highest mean of the same task, over the seeds that both have. p: paired t "
       "test over seeds, two-sided; where that is one seed, or all of them differ by the same, over the items (McNemar's exact "
       "test, or a t test where items are right in part), which tells these runs apart and says nothing of other seeds. Holm's "
       "correction over the lines of a task; best: each of them is below 0.05."}};
  for (const TaskScores& task : scores.tasks) add_rows(table, view, task), add_cut(table, view, task);
  if (scores.tasks.size() > 1) {
    add_rows(table, view, average_of(scores.tasks));
    table.notes.emplace_back("The average is the unweighted mean of the tasks, of the seeds that have a score on all of them.");
  }
  return table;
}

}  // namespace saccade

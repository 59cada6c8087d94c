#include "analysis/studies/report_scores.h"

#include <algorithm>
#include <cmath>

#include "analysis/studies/report_entries.h"

namespace saccade {
namespace {

constexpr double kLevel = 0.05;

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

struct Pair {
  const SeedScore *own = nullptr, *other = nullptr;
};
std::vector<Pair> pairs_of(const Seeds& own, const Seeds& other) {
  std::vector<Pair> pairs;
  for (const SeedScore& a : own)
    for (const SeedScore& b : other)
      if (a.seed == b.seed) pairs.push_back({&a, &b});
  return pairs;
}

/// A test of two cells, and over what it is: "3 seeds", "500 items"; empty where there is none.
struct Tested {
  PairedTest test;
  std::string over;
};

/// Over the items of all pairs of runs that answered the same ones. The difference stays that of the seeds.
Tested test_items(const std::vector<Pair>& pairs, const PairedTest& of_seeds) {
  std::vector<double> own, other;
  for (const Pair& pair : pairs) {
    if (pair.own->items.empty() || pair.own->items != pair.other->items || pair.own->right.size() != pair.other->right.size())
      return {of_seeds, ""};
    own.insert(own.end(), pair.own->right.begin(), pair.own->right.end());
    other.insert(other.end(), pair.other->right.begin(), pair.other->right.end());
  }
  if (own.empty()) return {of_seeds, ""};
  const auto is_whole = [](double right) { return right == 0 || right == 1; };
  Tested tested{of_seeds, std::to_string(own.size()) + " items"};
  if (std::all_of(own.begin(), own.end(), is_whole) && std::all_of(other.begin(), other.end(), is_whole)) {
    int64_t own_alone = 0, other_alone = 0;
    for (size_t i = 0; i < own.size(); ++i) own_alone += own[i] > other[i], other_alone += own[i] < other[i];
    tested.test.p = mcnemar_p(own_alone, other_alone);
  } else {
    tested.test.p = paired_test(own, other).p;
  }
  return tested;
}

Tested test_of(const Seeds& own, const Seeds& other) {
  const std::vector<Pair> pairs = pairs_of(own, other);
  std::vector<double> a, b;
  for (const Pair& pair : pairs) a.push_back(100 * pair.own->value), b.push_back(100 * pair.other->value);
  PairedTest test = paired_test(a, b);
  constexpr double kSame = 1e-9;  // rounding of equal shares
  if (test.difference.deviation.value_or(0) > kSame) return {test, std::to_string(pairs.size()) + " seeds"};
  test.p.reset();
  return test_items(pairs, test);
}

/// Tests of every cell against the highest, corrected, and whether that one is best.
struct Ranking {
  size_t highest = 0;
  std::vector<Tested> tests;  ///< of the cells; the highest one's, and those of cells without a score, are empty
  bool is_told = false;
};
Ranking rank(const std::vector<Seeds>& cells) {
  Ranking ranking;
  ranking.tests.resize(cells.size());
  double most = -1;
  for (size_t i = 0; i < cells.size(); ++i)
    if (!cells[i].empty() && mean(values_of(cells[i])) > most) most = mean(values_of(cells[i])), ranking.highest = i;
  std::vector<size_t> tested;
  std::vector<PairedTest> tests;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == ranking.highest || cells[i].empty()) continue;
    ranking.tests[i] = test_of(cells[i], cells[ranking.highest]);
    tests.push_back(ranking.tests[i].test), tested.push_back(i);
  }
  correct_by_holm(tests);
  ranking.is_told = !tests.empty();
  for (size_t k = 0; k < tested.size(); ++k) {
    ranking.tests[tested[k]].test = tests[k];
    ranking.is_told = ranking.is_told && tests[k].difference.mean < 0 && tests[k].p_holm.value_or(1) < kLevel;
  }
  return ranking;
}

void add_rows(ReportTable& table, const StudyView& view, const TaskScores& scores) {
  const Ranking ranking = rank(scores.cells);
  const auto p = [](const std::optional<double>& v) { return ReportEntry{v ? format("%.3g", *v) : "–", v.value_or(std::nan("")), {}}; };
  for (size_t i = 0; i < scores.cells.size(); ++i) {
    const Seeds& seeds = scores.cells[i];
    const Tested& tested = ranking.tests[i];
    const std::vector<std::string> sources = sources_of(seeds, scores.task);
    const double error = error_of(seeds), difference = tested.test.difference.count > 0 ? tested.test.difference.mean : std::nan("");
    ReportEntry items = count(scores.items);
    if (scores.partial) items.text += " of more";
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
                          words(i == ranking.highest && ranking.is_told ? "best" : "")});
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

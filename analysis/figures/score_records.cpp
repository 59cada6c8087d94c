#include "analysis/figures/score_records.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/comparison/repetitions.h"
#include "analysis/comparison/statistics.h"
#include "analysis/tasks/scored_items.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kNormal975 = 1.959964;

/// Wilson's 95 % score interval of a share of `items`, or of as many as `error` stands for where that are fewer: items of a group may be
/// alike. It stays between 0 and 1, and has a width where all items were right, or none.
std::array<double, 2> wilson_95(double share, double error, int64_t items) {
  const double z2 = kNormal975 * kNormal975, variance = share * (1 - share);
  auto n = static_cast<double>(items);
  if (error > 0 && variance > 0) n = items > 0 ? std::min(n, variance / (error * error)) : variance / (error * error);
  if (!(n > 0)) return {kNothing, kNothing};
  const double middle = (share + z2 / (2 * n)) / (1 + z2 / n), half = std::sqrt(z2 * (variance / n + z2 / (4 * n * n))) / (1 + z2 / n);
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

/// What cannot be read pairs with nothing.
AnsweredItems answered_items(const Run& run, const std::string& task, int64_t step) {
  try {
    const TaskResult result = read_task_result(run.info().directory, task, step);
    return {result.data_hash, right_of(result)};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<const TaskScoreRecord*> records_of(const Run& run, const std::string& task) {
  std::map<std::string, const TaskScoreRecord*> newest;
  for (const TaskScoreRecord& record : run.task_scores()) {
    if (!task.empty() && record.task != task && !record.task.starts_with(task + "-")) continue;
    const TaskScoreRecord*& kept = newest[record.task];
    if (!kept || std::pair(!record.partial, record.step) >= std::pair(!kept->partial, kept->step)) kept = &record;
  }
  std::vector<const TaskScoreRecord*> records;
  for (const auto& [name, record] : newest) records.push_back(record);
  return records;
}

const TaskScoreRecord::Score* main_score(const TaskScoreRecord& record) {
  for (const TaskScoreRecord::Score& score : record.scores)
    if (score.metric == record.metric) return &score;
  return nullptr;
}

void Together::add(double value, double item_error, int64_t item_count) {
  values.push_back(value);
  error = item_error, items = item_count;
}

double Together::value() const { return mean(values); }

double Together::standard_error() const {
  return values.size() > 1 ? *deviation(values) / std::sqrt(static_cast<double>(values.size())) : error;
}

std::array<double, 2> Together::interval_95() const {
  const Repeated seeds = repeated(values);
  if (!seeds.half_95) return wilson_95(value(), error, items);
  return {std::max(0.0, seeds.mean - *seeds.half_95), std::min(1.0, seeds.mean + *seeds.half_95)};
}

Curve curve_of(const DrawnRuns& group, const std::map<double, Together>& points) {
  Curve curve{.label = group.label, .x = {}, .y = {}, .colour = group.colour, .dash = group.dash, .marker = group.marker};
  if (curve.marker == Marker::none) curve.marker = Marker::circle;
  for (const auto& [at, scores] : points) {
    curve.x.push_back(at), curve.y.push_back(scores.value());
    const auto [low, high] = scores.interval_95();
    curve.low.push_back(low), curve.high.push_back(high);
  }
  curve.bars = 0;
  return curve;
}

void put_bars_beside(std::vector<Curve>& curves) {
  constexpr double kReach = 12, kApart = 3;  // points: all of them near their markers, two of them not touching
  const auto count = static_cast<double>(std::count_if(curves.begin(), curves.end(), [](const Curve& c) { return c.bars.has_value(); }));
  const double apart = std::min(kApart, kReach / count);
  double place = -apart * (count - 1) / 2;
  for (Curve& curve : curves)
    if (curve.bars) curve.bars = place, place += apart;
}

AxisRecipe share_axis() { return {.title = "share right", .range = std::array<double, 2>{0, 1}}; }

std::set<std::string> tasks_of(const DrawnSet& drawn, const std::string& task) {
  std::set<std::string> names;
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      for (const TaskScoreRecord* record : records_of(*run, task)) names.insert(record->task);
  return names;
}

std::vector<std::string> tasks_of(const DrawnSet& drawn, const ScoreChoice& choice) {
  const std::set<std::string> there = tasks_of(drawn, choice.task);
  if (choice.tasks.empty()) return {there.begin(), there.end()};
  const bool any = std::any_of(choice.tasks.begin(), choice.tasks.end(), [&](const std::string& name) { return there.contains(name); });
  return any ? choice.tasks : std::vector<std::string>();
}

std::vector<const TaskScoreRecord*> counted(const Run& run, const std::string& task, bool all_checkpoints) {
  std::vector<const TaskScoreRecord*> records;
  const TaskScoreRecord* newest = nullptr;
  for (const TaskScoreRecord* record : records_of(run, task))
    if (record->task == task && main_score(*record)) newest = record;
  if (!newest) return records;
  if (!all_checkpoints) return {newest};
  for (const TaskScoreRecord& record : run.task_scores())
    if (record.task == task && record.options == newest->options && record.partial == newest->partial && main_score(record))
      records.push_back(&record);
  return records;
}

Together together(const DrawnRuns& group, const std::string& task, bool all_checkpoints) {
  Together found;
  for (const Run* run : group.seeds) {
    std::vector<double> values, errors;
    const std::vector<const TaskScoreRecord*> records = counted(*run, task, all_checkpoints);
    for (const TaskScoreRecord* record : records) {
      values.push_back(main_score(*record)->value), errors.push_back(main_score(*record)->standard_error);
      found.chance = record->chance, found.is_partial |= record->partial;
    }
    if (!values.empty()) found.add(mean(values), mean(errors), main_score(*records.back())->items);
  }
  return found;
}

std::vector<ScoredGroup> scored_groups(const DrawnSet& drawn, const std::string& task, bool all_checkpoints) {
  std::vector<ScoredGroup> groups;
  for (const DrawnRuns& drawn_runs : drawn) {
    ScoredGroup& group = groups.emplace_back();
    std::vector<const Run*> scored;
    for (const Run* run : drawn_runs.seeds) {
      std::vector<double> values;
      std::vector<int64_t> steps;
      for (const TaskScoreRecord* record : counted(*run, task, all_checkpoints))
        values.push_back(main_score(*record)->value), steps.push_back(record->step);
      if (values.empty()) continue;
      scored.push_back(run);
      group.seeds.push_back({run->info().seed, mean(values), [run, steps, task] {
                               std::vector<AnsweredItems> items;
                               for (const int64_t step : steps) items.push_back(answered_items(*run, task, step));
                               return items;
                             }});
    }
    group.is_independent = with_one_beginning(scored).empty();
  }
  return groups;
}

}  // namespace saccade

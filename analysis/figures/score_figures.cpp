#include "analysis/figures/score_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/comparison/statistics.h"
#include "analysis/figures/recipe.h"
#include "analysis/figures/score_records.h"
#include "analysis/figures/task_numbers.h"
#include "analysis/tasks/score_tests.h"

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool is_group(const std::string& name) { return name == "depth" || name == "distance" || name == "position"; }

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

struct Point {
  double at = 0, value = 0, error = 0;
  int64_t items = 0;
  double until = kNothing;  ///< of a group that reaches from a number to another: "depth 20-30 %"
};

/// Where a record stands by a name, with its score there; several of a group.
std::vector<Point> points_of(const Run& run, const TaskScoreRecord& record, const std::string& name) {
  std::vector<Point> points;
  if (is_group(name)) {
    const std::string begin = record.metric + " " + name + " ";
    for (const TaskScoreRecord::Score& score : record.scores)
      if (score.metric.starts_with(begin)) {
        char* behind = nullptr;
        const double at = std::strtod(score.metric.c_str() + begin.size(), &behind);
        points.push_back(
            {at, score.value, score.standard_error, score.items, *behind == '-' ? std::strtod(behind + 1, nullptr) : kNothing});
      }
    return points;
  }
  const double in_name = number_in_name(record.task, name), at = std::isfinite(in_name) ? in_name : run_number(run, name);
  if (const TaskScoreRecord::Score* score = main_score(record); score && std::isfinite(at))
    points.push_back({at, score->value, score->standard_error, score->items});
  return points;
}

/// One score of a map: where it stands, and whose it is.
struct MapScore {
  Point x, y;
  double value = 0;
  ScoreSource source;
};
std::vector<MapScore> map_scores(const DrawnSet& drawn, const std::string& task, const std::string& against, const std::string& rows) {
  std::vector<MapScore> scores;
  const bool columns_are_groups = is_group(against);
  const std::string group = columns_are_groups ? against : is_group(rows) ? rows : "";
  for (const DrawnRuns& each : drawn)
    for (const Run* run : each.seeds)
      for (const TaskScoreRecord* record : records_of(*run, task))
        for (const Point& outer : points_of(*run, *record, columns_are_groups ? rows : against))
          for (const Point& inner : points_of(*run, *record, columns_are_groups ? against : rows))
            scores.push_back({columns_are_groups ? inner : outer,
                              columns_are_groups ? outer : inner,
                              inner.value,
                              {run, record->task, record->step, group, group.empty() ? 0 : inner.at}});
  return scores;
}

/// The unweighted mean of `tasks` of a run, at each of its counted checkpoints that has them all.
std::vector<double> averages(const Run& run, const std::vector<std::string>& tasks, bool all_checkpoints) {
  std::map<int64_t, std::vector<double>> by_step;
  for (const std::string& task : tasks)
    for (const TaskScoreRecord* record : counted(run, task, all_checkpoints))
      by_step[all_checkpoints ? record->step : 0].push_back(main_score(*record)->value);
  std::vector<double> means;
  for (const auto& [step, values] : by_step)
    if (values.size() == tasks.size()) means.push_back(mean(values));
  return means;
}

/// The means of the tasks of a group: of each seed, or of each checkpoint of the only one.
std::vector<double> averages(const DrawnRuns& group, const std::vector<std::string>& tasks, bool all_checkpoints) {
  if (group.seeds.size() == 1) return averages(*group.seeds.front(), tasks, all_checkpoints);
  std::vector<double> of_seeds;
  for (const Run* run : group.seeds)
    if (const std::vector<double> own = averages(*run, tasks, all_checkpoints); !own.empty()) of_seeds.push_back(mean(own));
  return of_seeds;
}

std::string per_cent(double value, double error) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), std::isfinite(error) ? "%.1f ± %.1f" : "%.1f", 100 * value, 100 * error);
  return text.data();
}

std::string short_per_cent(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", 100 * value);
  return text.data();
}

/// How far from its task's number the dot of each group stands; groups that were scored on no task take no room.
template <class Tasks>
std::vector<double> places_beside(const DrawnSet& drawn, const Tasks& tasks) {
  std::vector<double> places(drawn.size(), 0);
  std::vector<size_t> scored;
  for (size_t g = 0; g < drawn.size(); ++g)
    if (std::any_of(tasks.begin(), tasks.end(), [&](const std::string& name) { return !together(drawn[g], name, false).values.empty(); }))
      scored.push_back(g);
  for (size_t i = 0; i < scored.size(); ++i)
    places[scored[i]] = 0.6 * (static_cast<double>(i) + 0.5) / static_cast<double>(scored.size()) - 0.3;
  return places;
}

/// The numbers along one axis of a map, each with the end of its group or NaN.
using Places = std::map<double, double>;

/// They stand beside each other by what they are called: numbers of pairs double, lengths too, and groups may be missing between two.
std::array<double, 2> extent_of(const Places& places, AxisRecipe& axis) {
  for (const auto& [value, end] : places) axis.names.push_back(short_number(value) + (std::isfinite(end) ? "–" + short_number(end) : ""));
  return {0.5, static_cast<double>(places.size()) + 0.5};
}

}  // namespace

Figure score_curve(const DrawnSet& drawn, const std::string& task, const std::string& against) {
  Figure figure{.id = "scores", .title = task, .x = {.title = score_axis_title(against)}, .y = share_axis()};
  std::map<double, double> chances;
  for (const DrawnRuns& group : drawn) {
    std::map<double, Together> points;
    for (const Run* run : group.seeds)
      for (const TaskScoreRecord* record : records_of(*run, task))
        for (const Point& point : points_of(*run, *record, against)) {
          points[point.at].add(point.value, point.error, point.items);
          chances[point.at] = record->chance;
        }
    if (!points.empty()) figure.curves.push_back(curve_of(group, points));
  }
  put_bars_beside(figure.curves);
  if (std::any_of(chances.begin(), chances.end(), [](const auto& chance) { return chance.second > 0; })) {
    Curve curve{.label = "chance", .x = {}, .y = {}, .colour = {128, 128, 128}, .dash = Dash::dash, .width = 1};
    for (const auto& [at, chance] : chances) curve.x.push_back(at), curve.y.push_back(chance);
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

Figure score_map(const DrawnSet& drawn, const std::string& task, const std::string& against, const std::string& rows) {
  Figure figure{.id = "score-map", .title = task, .x = {.title = score_axis_title(against)}, .y = {.title = score_axis_title(rows)}};
  std::map<std::pair<double, double>, std::vector<double>> cells;
  Places across, down;
  for (const MapScore& score : map_scores(drawn, task, against, rows)) {
    cells[{score.y.at, score.x.at}].push_back(score.value);
    across.emplace(score.x.at, score.x.until), down.emplace(score.y.at, score.y.until);
  }
  if (cells.empty()) return figure;
  HeatMap map{.rows = static_cast<int64_t>(down.size()), .columns = static_cast<int64_t>(across.size())};
  for (const auto& [y, row_end] : down)
    for (const auto& [x, column_end] : across) {
      const auto found = cells.find({y, x});
      map.values.push_back(found == cells.end() ? static_cast<float>(kNothing) : static_cast<float>(mean(found->second)));
    }
  map.value_title = "share right";
  map.column_extent = extent_of(across, figure.x), map.row_extent = extent_of(down, figure.y);
  figure.map = std::move(map);
  return figure;
}

std::vector<ScoreSource> sources_of_cell(const DrawnSet& drawn, const std::string& task, const std::string& against,
                                         const std::string& rows, int64_t row, int64_t column) {
  const std::vector<MapScore> scores = map_scores(drawn, task, against, rows);
  std::set<double> across, down;
  for (const MapScore& score : scores) across.insert(score.x.at), down.insert(score.y.at);
  std::vector<ScoreSource> sources;
  if (row < 0 || column < 0 || row >= static_cast<int64_t>(down.size()) || column >= static_cast<int64_t>(across.size())) return sources;
  const double x = *std::next(across.begin(), column), y = *std::next(down.begin(), row);
  for (const MapScore& score : scores)
    if (score.x.at == x && score.y.at == y) sources.push_back(score.source);
  return sources;
}

std::vector<ScoreSource> sources_of_dot(const DrawnSet& drawn, const std::string& task, double x) {
  std::vector<ScoreSource> nearest;
  double least = std::numeric_limits<double>::infinity(), at = 0;
  const std::set<std::string> tasks = tasks_of(drawn, task);
  const std::vector<double> beside = places_beside(drawn, tasks);
  for (const std::string& name : tasks) {
    ++at;
    for (size_t g = 0; g < drawn.size(); ++g) {
      const double away = std::abs(at + beside[g] - x);
      if (away >= least) continue;
      std::vector<ScoreSource> found;
      for (const Run* run : drawn[g].seeds)
        for (const TaskScoreRecord* record : records_of(*run, task))
          if (record->task == name && main_score(*record)) found.push_back({run, name, record->step});
      if (!found.empty()) nearest = std::move(found), least = away;
    }
  }
  return nearest;
}

Figure score_dots(const DrawnSet& drawn, const ScoreChoice& choice) {
  Figure figure{.id = "score-dots", .title = "Scores", .y = share_axis()};
  const std::vector<std::string> tasks = tasks_of(drawn, choice);
  figure.x.names = tasks;
  figure.x.range = std::array<double, 2>{0.5, static_cast<double>(tasks.size()) + 0.5};
  const std::vector<double> beside = places_beside(drawn, tasks);
  Curve chances{.label = "chance", .x = {}, .y = {}, .colour = {128, 128, 128}, .dash = Dash::dash, .width = 1};
  std::set<std::string> with_chance;
  for (size_t g = 0; g < drawn.size(); ++g) {
    const DrawnRuns& group = drawn[g];
    double at = 0;
    for (const std::string& name : tasks) {
      ++at;
      const Together found = together(group, name, choice.checkpoint_mean);
      if (found.chance > 0 && with_chance.insert(name).second)  // of whatever group was scored
        for (const double x : {at - 0.4, at + 0.4, kNothing}) chances.x.push_back(x), chances.y.push_back(found.chance);
      if (found.values.empty()) continue;
      const bool first = std::none_of(figure.curves.begin(), figure.curves.end(), [&](const Curve& c) { return c.label == group.label; });
      Curve dot{.label = group.label, .x = {}, .y = {}, .colour = group.colour, .marker = group.marker, .in_legend = first};
      if (dot.marker == Marker::none) dot.marker = Marker::circle;
      dot.x.push_back(at + beside[g]), dot.y.push_back(found.value());
      const auto [low, high] = found.interval_95();
      dot.low.push_back(low), dot.high.push_back(high), dot.bars = 0;
      figure.curves.push_back(std::move(dot));
    }
  }
  if (chances.x.size() > 0) figure.curves.push_back(std::move(chances));
  return figure;
}

namespace {

/// The last rows: the mean of the tasks, and what its values over checkpoints or seeds say of it.
void add_averages(PageTable& table, const DrawnSet& drawn, const std::vector<std::string>& tasks, bool all_checkpoints) {
  std::vector<std::string> means{"mean of the tasks", ""}, deviations{"deviation", ""}, errors{"standard error", ""},
      intervals{"95 % interval", ""};
  for (const DrawnRuns& group : drawn) {
    const Repeated all = repeated(averages(group, tasks, all_checkpoints));
    const bool several = all.deviation && all.half_95;
    means.push_back(all.count > 0 ? per_cent(all.mean, kNothing) : "–");
    deviations.push_back(several ? short_per_cent(*all.deviation) : "–");
    errors.push_back(several ? short_per_cent(*all.deviation / std::sqrt(static_cast<double>(all.count))) : "–");
    intervals.push_back(several ? short_per_cent(all.mean - *all.half_95) + " to " + short_per_cent(all.mean + *all.half_95) : "–");
  }
  table.rows.push_back(std::move(means));
  if (!all_checkpoints) return;
  for (auto* row : {&deviations, &errors, &intervals}) table.rows.push_back(std::move(*row));
}

}  // namespace

PageTable score_table(const DrawnSet& drawn, const ScoreChoice& choice, const std::string& title) {
  PageTable table{title.empty() ? "Scores (%), ± standard error" : title, {"task", "chance"}, {}};
  for (const DrawnRuns& group : drawn) table.header.push_back(group.label);
  const std::vector<std::string> tasks = tasks_of(drawn, choice);
  bool any_partial = false;
  for (const std::string& name : tasks) {
    std::vector<Together> scores;
    for (const DrawnRuns& group : drawn) scores.push_back(together(group, name, choice.checkpoint_mean));
    const auto scored = std::find_if(scores.begin(), scores.end(), [](const Together& t) { return !t.values.empty(); });
    const std::optional<size_t> best = rank_scores(scored_groups(drawn, name, choice.checkpoint_mean)).best();
    std::vector<std::string> row{name, scored == scores.end() ? "–" : per_cent(scored->chance, kNothing)};
    for (size_t i = 0; i < scores.size(); ++i) {
      const Together& score = scores[i];
      any_partial |= score.is_partial;
      row.push_back(score.values.empty()
                        ? "–"
                        : per_cent(score.value(), score.standard_error()) + (score.is_partial ? " (part)" : "") + (i == best ? " *" : ""));
    }
    table.rows.push_back(std::move(row));
  }
  if (tasks.size() > 1) add_averages(table, drawn, tasks, choice.checkpoint_mean);
  if (tasks.empty()) return table;
  table.notes.push_back(
      "Errors are over seeds where there are several, else over items. * is above every other with p < 0.05 after Holm's correction: in "
      "paired t tests of the seeds in common, two or more, else over the items that both answered (McNemar's exact test, or a paired t "
      "test where items can be right in part), which says nothing of other seeds.");
  if (choice.checkpoint_mean)
    table.notes.push_back(
        "Scores are means over the checkpoints scored; deviation, error and interval of the mean of the tasks are over those of a single "
        "run, which are not independent, or over seeds.");
  if (any_partial) table.notes.push_back("(part): not all items of the task were scored.");
  return table;
}

}  // namespace saccade

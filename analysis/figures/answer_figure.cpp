#include "analysis/figures/answer_figure.h"

#include <cmath>
#include <map>
#include <set>

#include "analysis/comparison/comparison_warnings.h"
#include "analysis/comparison/look_ahead.h"
#include "analysis/comparison/statistics.h"
#include "analysis/figures/recipe.h"
#include "analysis/figures/score_records.h"
#include "analysis/figures/task_numbers.h"

namespace saccade {
namespace {

/// Where a domain of a run's task stands; NaN: nowhere.
double place_of(const Run& run, const std::string& domain, const std::string& against) {
  const double in_name = number_in_name("task-" + domain, against);
  return std::isfinite(in_name) ? in_name : run_number(run, against);
}

/// Of one run, by place.
std::map<double, double> shares_of(const Run& run, const std::string& against) {
  std::map<double, std::vector<double>> all;
  if (run.last_evaluation())
    for (const DomainLoss& loss : run.last_evaluation()->losses)
      if (const double at = place_of(run, loss.domain, against); std::isfinite(at) && std::isfinite(loss.accuracy))
        all[at].push_back(loss.accuracy);
  std::map<double, double> shares;
  for (const auto& [at, values] : all) shares[at] = mean(values);
  return shares;
}

/// The greatest number that a run was trained at; NaN where it has none.
double trained_up_to(const Run& run, const std::string& against) {
  double most = std::numeric_limits<double>::quiet_NaN();
  if (run.last_evaluation())
    for (const DomainLoss& loss : run.last_evaluation()->losses)
      if (!loss.ood) most = std::fmax(most, number_in_name("task-" + loss.domain, against));
  return most;
}

}  // namespace

Figure answer_figure(const DrawnSet& drawn, const std::string& against) {
  Figure figure{.id = "answers", .title = "Right answers", .x = {.title = score_axis_title(against)}, .y = share_axis()};
  std::set<double> trained;
  std::vector<std::string> ahead;
  for (const DrawnRuns& group : drawn) {
    std::map<double, Together> points;
    for (const Run* run : group.seeds) {
      for (const auto& [at, share] : shares_of(*run, against)) points[at].add(share, 0, 0);
      if (const double most = trained_up_to(*run, against); std::isfinite(most)) trained.insert(most);
    }
    if (points.empty()) continue;
    figure.curves.push_back(curve_of(group, points));  // of one seed without bars
    if (!looks_ahead(group.seeds.front()->info().config).empty()) ahead.push_back(group.label);
  }
  if (!ahead.empty())  // answers stand in the text that is read in one pass
    figure.notes.push_back(named_briefly(ahead) + (ahead.size() == 1 ? " looks" : " look") +
                           " ahead, so what is read for an answer may depend on the answer itself.");
  put_bars_beside(figure.curves);
  if (trained.size() == 1) {  // its name stands at the axis, for above, where shares are near 1, it would lie on them
    figure.vertical_line = *trained.begin();
    figure.x.title += ", trained up to " + std::to_string(std::llround(*trained.begin()));
  }
  return figure;
}

}  // namespace saccade

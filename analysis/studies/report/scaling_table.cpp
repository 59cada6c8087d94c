#include "analysis/studies/report/scaling_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/comparison/scaling_law.h"
#include "analysis/studies/report/equal_loss_table.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace {

using Cells = std::vector<CellNumbers>;

/// What a law is fitted to.
struct Ends {
  std::vector<double> parameters, tokens, inside, outside;
  std::vector<std::string> sources;
};

void add(Ends& ends, const SeedNumbers& seed) {
  const auto point = [&](double tokens, double inside, double outside) {
    ends.parameters.push_back(static_cast<double>(seed.summary.parameters)), ends.tokens.push_back(tokens);
    ends.inside.push_back(inside), ends.outside.push_back(outside);
  };
  ends.sources.push_back(seed.branch_ends ? equal_source(seed) : seed.source());
  if (!seed.branch_ends) return point(static_cast<double>(seed.end.tokens), seed.end.validation, seed.end.ood);
  const Course& course = seed.course(Spent::tokens);
  for (size_t i = 0; i < course.spent.size(); ++i) point(course.spent[i], course.pretraining[i], course.ood[i]);
}

size_t different(const std::vector<double>& values) { return std::set<double>(values.begin(), values.end()).size(); }

/// What tells two cells apart on the other axes.
std::string others(const StudyCell& cell, const std::set<size_t>& but) {
  std::string name;
  for (size_t axis = 0; axis < cell.labels.size(); ++axis)
    if (!but.contains(axis)) name += (name.empty() ? "" : "_") + cell.labels[axis];
  return name;
}

/// Numeric axes along which parameters or tokens change while the other axes stay.
std::set<size_t> axes_of_size(const StudyView& view, const Cells& cells) {
  std::set<size_t> sizes;
  for (size_t axis = 0; axis < view.study.axes.size(); ++axis) {
    std::map<std::string, std::vector<double>> parameters, tokens;
    for (const CellNumbers& cell : cells) {
      if (cell.seeds.empty() || !view.cells[cell.cell].numbers[axis]) continue;
      const std::string fixed = others(view.cells[cell.cell], {axis});
      parameters[fixed].push_back(static_cast<double>(cell.seeds.front().summary.parameters));
      tokens[fixed].push_back(static_cast<double>(cell.seeds.front().end.tokens));
    }
    const auto changes = [](const auto& group) { return different(group.second) > 1; };
    if (std::any_of(parameters.begin(), parameters.end(), changes) || std::any_of(tokens.begin(), tokens.end(), changes))
      sizes.insert(axis);
  }
  return sizes;
}

std::vector<ReportEntry> row_of(const std::string& name, const std::string& loss, const ScalingLaw& law, const Ends& ends) {
  const auto number = [&](const char* pattern, double value, const std::array<double, 2>& range) {
    return ReportEntry{format(pattern, value) + " [" + format(pattern, range[0]) + ", " + format(pattern, range[1]) + "]", value,
                       ends.sources};
  };
  const auto plain = [&](const char* pattern, double value) { return ReportEntry{format(pattern, value), value, ends.sources}; };
  double largest = 0;
  for (const double r : law.residuals)
    if (std::isfinite(r)) largest = std::max(largest, std::abs(r));
  const ScalingLaw::Numbers& n = law.numbers;
  return {words(name),
          words(loss),
          count(static_cast<int64_t>(law.points)),
          number("%.3f", n.floor, law.interval_95.floor),
          plain("%.4g", std::exp(n.log_a)),
          number("%.3f", n.alpha, law.interval_95.alpha),
          plain("%.4g", std::exp(n.log_b)),
          number("%.3f", n.beta, law.interval_95.beta),
          number("%.3f", n.optimal_exponent(), law.interval_95.optimal_exponent),
          plain("%.4f", largest)};
}

void add_laws(ReportTable& table, const std::string& name, const Ends& ends) {
  for (const auto& [loss, values] : {std::pair{"in-domain", &ends.inside}, std::pair{"OOD", &ends.outside}}) try {
      table.rows.push_back(row_of(name, loss, fit_scaling_law(ends.parameters, ends.tokens, *values), ends));
    } catch (const UsageError& why) {
      table.notes.push_back((name.empty() ? "" : name + ", ") + std::string(loss) + ": " + why.what() + ".");
    }
}

}  // namespace

std::optional<ReportTable> scaling_table(const StudyView& view, const Cells& cells) {
  const std::set<size_t> sizes = axes_of_size(view, cells);
  std::vector<std::string> order;
  std::map<std::string, Ends> groups;
  for (const CellNumbers& cell : cells) {
    const std::string name = others(view.cells[cell.cell], sizes);
    if (!groups.contains(name)) order.push_back(name);
    for (const SeedNumbers& seed : cell.seeds) add(groups[name], seed);
  }
  // Fewer numbers of either carry no law, however many runs there are: such a study is about something else.
  const auto both_change = [](const auto& group) { return different(group.second.parameters) > 2 && different(group.second.tokens) > 2; };
  if (sizes.empty() || std::none_of(groups.begin(), groups.end(), both_change)) return {};
  ReportTable table{
      "scaling",
      "Scaling laws",
      {"", "loss", "ends", "E", "A", "α", "B", "β", "β / (α + β)", "largest residual"},
      {},
      {"L = E + A / N^α + B / D^β of parameters N (embeddings included) and training tokens D, by the Huber loss of logarithms "
       "(arXiv:2203.15556, section 3.3). In brackets the middle 95 % of 1 000 samples of the ends drawn with replacement. For C "
       "floating-point operations the best N grows as C^(β / (α + β)), if the law holds; the largest residual, of ln L, says how "
       "far it is from these runs."}};
  for (const std::string& name : order) add_laws(table, name, groups[name]);
  return table;
}

}  // namespace saccade

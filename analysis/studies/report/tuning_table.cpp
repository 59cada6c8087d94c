#include "analysis/studies/report/tuning_table.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace saccade {

std::vector<std::string> tuning_sources(const StudyView& view, size_t cell, double value) {
  std::vector<std::string> sources;
  if (!view.study.tuning) return sources;
  const std::vector<int64_t>& seeds = view.study.tuning->seeds;
  for (const size_t at : view.views[cell].wanted) {
    const WantedRun& wanted = view.wanted[at];
    if (wanted.run.tuned == value && wanted.there && std::find(seeds.begin(), seeds.end(), wanted.run.seed) != seeds.end())
      sources.push_back("runs/" + wanted.name + ", step " + std::to_string(wanted.there->end.step) + ", validation split");
  }
  return sources;
}

namespace {

std::string searched_seeds(const StudyView& view) {
  const size_t seeds = view.study.tuning ? view.study.tuning->seeds.size() : 1;
  if (seeds == 1)
    return "Validation losses (nats per token) of the runs at one seed; nothing else chooses. That seed is one of those reported, which "
           "favours its validation loss as the least of several.";
  return "Validation losses (nats per token), the mean over " + std::to_string(seeds) +
         " seeds; nothing else chooses. Those seeds are among those reported, which favours their validation loss as the least of several.";
}

}  // namespace

ReportTable tuning_table(const StudyView& view) {
  ReportTable table{"tuning", "The search for the best value", {"", "result"}, {}, {searched_seeds(view)}};
  std::set<double> values;
  for (const CellView& cell : view.views)
    for (const TriedValue& tried : cell.tuning.tried) values.insert(tried.value);
  for (const double value : values) table.header.push_back(plain_number(value));
  for (size_t i = 0; i < view.cells.size(); ++i) {
    std::vector<ReportEntry> row{words(view.cells[i].name), words(describe(view.views[i].tuning))};
    for (const double value : values) {
      ReportEntry entry = words("");
      for (const TriedValue& tried : view.views[i].tuning.tried)
        if (tried.value == value) entry = {std::isinf(tried.loss) ? "diverged" : format("%.4f", tried.loss), tried.loss, {}};
      entry.sources = tuning_sources(view, i, value);
      row.push_back(std::move(entry));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace saccade

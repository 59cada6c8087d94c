#pragma once
#include "analysis/studies/report/numbers.h"
#include "analysis/studies/report/report.h"

namespace saccade {

/// What the tables of a report are made of.

constexpr const char* kIntervals = "± standard deviation over seeds, [±] half of the 95 % interval of the mean (Student t).";

/// As printf does it; a dash where the value is not finite.
std::string format(const char* pattern, double value);
ReportEntry words(const std::string& text);
ReportEntry count(int64_t value);
/// "3.4120 ± 0.0100 [±0.0248]": mean, standard deviation, half of the 95 % interval.
ReportEntry entry_of(const Repeated& r, std::vector<std::string> sources);
/// Where the losses at the ends of a cell's seeds are from.
std::vector<std::string> sources_of(const CellNumbers& cell);

/// What a cell's seeds give, in their order.
template <class F>
std::vector<double> values_of(const CellNumbers& cell, F value) {
  std::vector<double> values;
  for (const SeedNumbers& seed : cell.seeds) values.push_back(value(seed));
  return values;
}

}  // namespace saccade

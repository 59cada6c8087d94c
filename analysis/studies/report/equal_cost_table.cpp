#include "analysis/studies/report/equal_cost_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/studies/report/equal_loss_table.h"

namespace saccade {

std::optional<double> equal_amount(const std::vector<CellNumbers>& cells, Spent spent) {
  std::vector<Course> courses;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds) courses.push_back(seed.course(spent));
  return least_spent(courses);
}

namespace {

/// A loss of a cell's seeds at an amount; NaN where a seed's first point lies behind it.
std::vector<double> at_amount(const CellNumbers& cell, Spent spent, double amount, bool ood) {
  return values_of(cell, [&](const SeedNumbers& s) {
    const auto at = losses_at(s.course(spent), amount);
    return !at ? std::nan("") : ood ? at->ood : at->pretraining;
  });
}

/// "ends" where all seeds had just ended there, else as read_from() says.
std::string read_at(const CellNumbers& cell, Spent spent, double amount) {
  const bool ends = std::all_of(cell.seeds.begin(), cell.seeds.end(), [&](const SeedNumbers& s) {
    return !s.course(spent).spent.empty() && s.course(spent).spent.back() <= 1.01 * amount;
  });
  return !cell.seeds.empty() && ends ? "ends" : read_from(cell);
}

std::string with_capital(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace

ReportTable equal_cost_table(const std::vector<CellNumbers>& cells, const Comparable& can, const std::string& unit) {
  ReportTable table{"equal-cost",
                    "Losses at equal tokens, FLOPs and seconds",
                    {"", "equal", "seeds", "in-domain loss", "OOD loss", "OOD against first", "read from"},
                    {},
                    {with_capital(unit) +
                         ", at what the run has taken that took least; between two points of a run linearly. Seeds whose first "
                         "point lies behind it are left out: an earlier branch would read them. " +
                         std::string(kIntervals),
                     can.seconds ? "Seconds are those of the training steps alone, on " + can.devices + "."
                                 : "No line for seconds: " + can.devices + "."}};
  table.notes.insert(table.notes.end(), can.shared.begin(), can.shared.end());
  for (const Spent spent : {Spent::tokens, Spent::flops, Spent::seconds}) {
    const std::optional<double> amount = equal_amount(cells, spent);
    if (!amount || (spent == Spent::seconds && !can.seconds)) continue;
    double first = std::nan("");
    for (const CellNumbers& cell : cells) {
      const Repeated inside = repeated(at_amount(cell, spent, *amount, false)), outside = repeated(at_amount(cell, spent, *amount, true));
      if (&cell == &cells.front()) first = outside.mean;
      table.rows.push_back({words(cell.name),
                            words(describe(spent, *amount)),
                            count(inside.count),
                            entry_of(inside, equal_sources(cell)),
                            entry_of(outside, equal_sources(cell)),
                            {format("%+.4f", outside.mean - first), outside.mean - first, equal_sources(cell)},
                            words(read_at(cell, spent, *amount))});
    }
  }
  return table;
}

}  // namespace saccade

#pragma once
#include <optional>

#include "analysis/studies/report/cost_table.h"

namespace saccade {

/// The amount that every seed has come to.
std::optional<double> equal_amount(const std::vector<CellNumbers>& cells, Spent spent);

/// Losses at equal tokens, FLOPs and seconds (the last where they compare); `unit` is that of the losses, in words.
ReportTable equal_cost_table(const std::vector<CellNumbers>& cells, const Comparable& can, const std::string& unit);

}  // namespace saccade

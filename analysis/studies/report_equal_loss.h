#pragma once
#include <optional>

#include "analysis/studies/report_entries.h"

namespace saccade {

/// OOD losses of a study's cells at equal pre-training loss.

/// What the first cell and the most others have passed together (widest_common_loss).
std::optional<double> equal_loss(const std::vector<CellNumbers>& cells);
/// The lowest pre-training loss that all seeds of both cells have passed.
std::optional<double> equal_loss(const CellNumbers& a, const CellNumbers& b);
/// "branch ends", "mid-schedule", "partly mid-schedule"; a dash without seeds.
std::string read_from(const CellNumbers& cell);
/// The points that a seed is read between.
std::string equal_source(const SeedNumbers& seed);
std::vector<std::string> equal_sources(const CellNumbers& cell);
/// The split that losses at equal pre-training loss are of: "test", "validation", or both.
std::string equal_split(const std::vector<CellNumbers>& cells);

ReportTable equal_loss_table(const std::vector<CellNumbers>& cells);

}  // namespace saccade

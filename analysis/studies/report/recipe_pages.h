#pragma once
#include "analysis/studies/report/numbers.h"
#include "analysis/studies/report/report.h"

namespace saccade {

/// Figures of papers in a report, by the recipes that its study names (Study::recipes).
struct RecipePages {
  std::vector<ReportPage> pages;     ///< those that show something
  std::vector<std::string> remarks;  ///< in words which are not drawn, or are empty in part, and why
};
/// Of the runs that the report's tables show, and of their branches. Throws DataError where a recipe cannot be read.
RecipePages recipe_pages(const StudyView& view, const std::vector<CellNumbers>& cells);

}  // namespace saccade

#pragma once
#include "analysis/studies/report/entries.h"

namespace saccade {

/// What a study's runs have taken can be compared: seconds only where all are of one device.
struct Comparable {
  std::string devices;  ///< one device, or why seconds do not compare
  bool seconds = false;
  std::vector<std::string> shared;  ///< shared_time()
};
Comparable comparable(const StudyView& view);

/// Parameters, tokens, FLOPs, bytes of state and seconds of every cell: means of its runs.
ReportTable cost_table(const StudyView& view, const std::vector<CellNumbers>& cells, const Comparable& can);

}  // namespace saccade

#pragma once
#include <filesystem>

#include "analysis/figures/figure.h"

namespace saccade::cli {

/// Writes a figure by the file's suffix. CSV and JSON are written here; pictures (PDF, SVG, PNG) by saccade-workbench, found
/// beside this program or on PATH, without a display. Throws UsageError (suffix), DataError (cannot write), Error when the
/// workbench is not installed.
void write_figure(const Figure& figure, const std::filesystem::path& out);

/// The workbench's path; empty when it is not installed.
std::filesystem::path find_workbench();

}  // namespace saccade::cli

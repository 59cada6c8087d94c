#pragma once
#include <filesystem>

#include "analysis/figures/page.h"

namespace saccade::cli {

/// Writes a figure by the file's suffix. CSV and JSON are written here; pictures (PDF, SVG, PNG) by saccade-workbench, found
/// beside this program or on PATH, without a display. Throws UsageError (suffix), DataError (cannot write), Error when the
/// workbench is not installed.
void write_figure(const Figure& figure, const std::filesystem::path& out);
/// The same of a page, which can also be .tex.
void write_page(const FigurePage& page, const std::filesystem::path& out);

/// Writes a file aside, syncs and renames it, so that no half-written one is ever seen. Throws DataError.
void write_text(const std::filesystem::path& out, const std::string& text);

/// Throws UsageError for a suffix that write_figure does not know, Error when it takes the workbench and that is not installed.
void require_figure_format(const std::filesystem::path& out);

/// The workbench's path; empty when it is not installed.
std::filesystem::path find_workbench();

}  // namespace saccade::cli

#pragma once
#include "analysis/tasks/task_items.h"

namespace saccade {

/// Whether a file's name says that it holds comma- or tab-separated values (.csv, .tsv, also .gz, .zst).
bool is_csv(const std::filesystem::path& file);
/// Rows with text fields. `columns` are their names; empty: the first row has them. Quotes as in RFC 4180. Throws DataError with file and
/// line, also where this program was built without libcsv.
std::vector<TaskRow> read_csv_rows(const std::filesystem::path& file, const std::vector<std::string>& columns = {});

}  // namespace saccade

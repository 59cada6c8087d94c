#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/corpus/corpus.h"

namespace saccade {

/// One file to import.
struct SourceFile {
  std::filesystem::path path;
  bool json_lines = false;
  std::string domain;          ///< for documents that name none themselves
  std::optional<Split> split;  ///< named by the file or a folder
  int64_t bytes = 0;
  char separator = 0;    ///< of a table with named columns (CSV, TSV), whose rows are records as JSON lines are
  bool parquet = false;  ///< a table in that form, likewise
};

/// The files of `sources` in order, those of a folder sorted by path. A folder that holds JSON lines gives only those, so that a
/// README beside them is no document, and so does one that holds Parquet files; tables of text are read as such where a folder has nothing
/// else, or by their own path. Of the links in a folder only those to files inside it are followed; `left_out` gets a line for every other
/// one. Throws DataError for what is missing, unreadable, empty or a table in a binary form that is not read.
std::vector<SourceFile> find_sources(const std::vector<std::filesystem::path>& sources, bool use_file_splits,
                                     std::vector<std::string>& left_out);

}  // namespace saccade

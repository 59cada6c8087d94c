#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "models/corpus/document_reader.h"

namespace saccade {

/// Whether this program was built with Apache Arrow's C++ library.
bool reads_parquet();
/// Whether a file's name says that it is a table in the form Parquet.
bool is_parquet(const std::filesystem::path& file);
/// What to do with a Parquet file where it is not read, for the end of a message.
std::string how_to_read_parquet(const std::filesystem::path& file);

/// Hands over every row as a JSON object by its columns' names, its place counted from 1; a row group at a time, so that memory is bounded
/// by the largest. `columns`: only these of the outermost ones, of which the file must have the first; empty: all. Numbers, texts,
/// booleans, lists and structs come as such, dates and the like as text. Throws DataError with the file's name where it is damaged, lacks
/// that column, or this program was built without Arrow.
void read_parquet_rows(const std::filesystem::path& file, const std::vector<std::string>& columns, DocumentVisitor& visitor);

}  // namespace saccade

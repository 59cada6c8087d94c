#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/corpus/import_sources.h"

namespace saccade {

/// What stands in a file, piece by piece, in bounded memory.
class DocumentVisitor {
 public:
  virtual ~DocumentVisitor() = default;
  /// One line of JSON lines (a table's row comes as such a one, with its columns' names), or one text (a whole file, or a part of a long
  /// one). `line` counts from 1.
  virtual void piece(std::string_view bytes, int64_t line) = 0;
  virtual void too_long(int64_t line) = 0;  ///< a JSON line, or a table's row, of more than kLongestLine bytes
  /// A row of a table that does not fit its columns.
  virtual void malformed(int64_t line, const std::string& what) = 0;
  virtual void progress(int64_t bytes_of_file) = 0;
  /// The outermost columns that are read of a Parquet file; empty: all.
  virtual std::vector<std::string> columns() const { return {}; }
};

constexpr size_t kLongestLine = 64 << 20;
/// Values in a row of a table.
constexpr size_t kMostColumns = 1 << 16;
/// Text files longer than this are cut into documents at a blank line, else a line end, else a character.
constexpr size_t kLongestText = 1 << 20;

void read_documents(const SourceFile& file, DocumentVisitor& visitor);

}  // namespace saccade

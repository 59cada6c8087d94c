#include "models/corpus/document_reader.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "models/corpus/byte_stream.h"
#include "models/corpus/parquet_rows.h"
#include "models/corpus/utf8.h"
#include "models/json.h"

namespace saccade {
namespace {

/// Lines as they arrive. Of a line that is too long only the length is followed.
class LineSplitter {
 public:
  explicit LineSplitter(DocumentVisitor& visitor) : visitor_(visitor) {}

  void feed(std::string& buffer) {
    size_t begin = 0;
    for (size_t end = buffer.find('\n', searched_); end != buffer.npos; end = buffer.find('\n', begin)) {
      finish_line(std::string_view(buffer).substr(begin, end - begin));
      begin = end + 1;
    }
    buffer.erase(0, begin);
    if (buffer.size() > kLongestLine) {
      skipping_ = true;
      buffer.clear();
    }
    searched_ = buffer.size();
  }

  void finish(std::string& buffer) {
    if (!buffer.empty() || skipping_) finish_line(buffer);
  }

 private:
  void finish_line(std::string_view line) {
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (skipping_ || line.size() > kLongestLine)
      visitor_.too_long(number_);
    else if (line.find_first_not_of(" \t") != line.npos)
      visitor_.piece(line, number_);
    skipping_ = false;
  }

  DocumentVisitor& visitor_;
  int64_t number_ = 0;
  size_t searched_ = 0;  ///< no line end before this
  bool skipping_ = false;
};

size_t text_cut(std::string_view text) {
  const size_t blank = text.rfind("\n\n", kLongestText);
  if (blank != text.npos && blank > kLongestText / 2) return blank + 2;
  const size_t line = text.rfind('\n', kLongestText);
  if (line != text.npos && line > kLongestText / 2) return line + 1;
  const size_t character = utf8_floor(text, kLongestText);
  return character > 0 ? character : kLongestText;
}

class TextCutter {
 public:
  explicit TextCutter(DocumentVisitor& visitor) : visitor_(visitor) {}

  void feed(std::string& buffer) {
    while (buffer.size() > kLongestText + 4) take(buffer, text_cut(buffer));
  }
  void finish(std::string& buffer) {
    if (!buffer.empty()) take(buffer, buffer.size());
  }

 private:
  void take(std::string& buffer, size_t size) {
    const std::string_view text = std::string_view(buffer).substr(0, size);
    visitor_.piece(text, line_);
    line_ += std::count(text.begin(), text.end(), '\n');
    buffer.erase(0, size);
  }

  DocumentVisitor& visitor_;
  int64_t line_ = 1;
};

/// Rows of comma- or tab-separated values (RFC 4180: quotes around what holds separators or line ends, doubled within) as JSON objects by
/// the names in the first row. Of a row that is too long only the end is looked for.
class RowSplitter {
 public:
  RowSplitter(DocumentVisitor& visitor, std::string file, char separator)
      : visitor_(visitor), file_(std::move(file)), separator_(separator) {}

  void feed(std::string& buffer) {
    for (const char c : buffer) take(c);
    buffer.clear();
  }

  void finish(std::string&) {
    if (quoted_ && !after_quote_) return visitor_.malformed(begin_, "a quote that is not closed");
    if (count_ > 0 || !field_.empty() || quoted_) end_row();
  }

 private:
  void take(char c) {
    line_ += c == '\n';
    if (quoted_ && !after_quote_) {
      if (c == '"')
        after_quote_ = true;
      else
        add(c);
    } else if (c == '"' && after_quote_) {  // doubled
      after_quote_ = false;
      add(c);
    } else if (c == '"' && field_.empty()) {
      quoted_ = true;
    } else if (c == separator_) {
      end_field();
    } else if (c == '\n') {
      if (field_.ends_with('\r') && !quoted_) field_.pop_back();
      if (count_ > 0 || !field_.empty() || quoted_) end_row();
      begin_ = line_;
    } else if (!(after_quote_ && c == '\r')) {
      add(c);
    }
  }

  void add(char c) {
    if (++bytes_ <= kLongestLine) field_ += c;
  }

  /// Values beyond those that a row may have are counted only: a line of separators asks for no memory.
  void end_field() {
    if (++count_ <= (names_.empty() ? kMostColumns : names_.size())) fields_.push_back(std::move(field_));
    field_.clear();
    quoted_ = after_quote_ = false;
  }

  void end_row() {
    end_field();
    if (bytes_ > kLongestLine)
      visitor_.too_long(begin_);
    else if (names_.empty())
      take_names();
    else
      hand_over();
    fields_.clear();
    count_ = bytes_ = 0;
  }

  void take_names() {
    if (count_ > kMostColumns) throw DataError(file_ + ": more than " + std::to_string(kMostColumns) + " columns");
    names_ = fields_;
    if (std::any_of(names_.begin(), names_.end(), [](const std::string& name) { return valid_utf8(name) != name.size(); }))
      throw DataError(file_ + ": the names of its columns, in the first row, are not valid UTF-8");
  }

  void hand_over() {
    if (count_ != names_.size())
      return visitor_.malformed(begin_, std::to_string(count_) + " values, the first row has " + std::to_string(names_.size()));
    nlohmann::json row = nlohmann::json::object();
    for (size_t i = 0; i < names_.size(); ++i) {
      if (const size_t valid = valid_utf8(fields_[i]); valid != fields_[i].size()) return visitor_.piece(fields_[i], begin_);
      row[names_[i]] = fields_[i];
    }
    visitor_.piece(row.dump(), begin_);
  }

  DocumentVisitor& visitor_;
  std::string file_;
  char separator_;
  std::vector<std::string> names_, fields_;
  std::string field_;
  size_t bytes_ = 0, count_ = 0;               ///< of the row, and its values
  int64_t line_ = 1, begin_ = 1;               ///< here, and where the row began
  bool quoted_ = false, after_quote_ = false;  ///< the field is in quotes; and they are closed, or the first of two was read
};

template <class Cutter, class... More>
void read_with(ByteStream& stream, DocumentVisitor& visitor, More... more) {
  Cutter cutter(visitor, more...);
  std::string buffer;
  while (stream.read(buffer)) {
    cutter.feed(buffer);
    visitor.progress(stream.consumed());
  }
  cutter.finish(buffer);
}

}  // namespace

void read_documents(const SourceFile& file, DocumentVisitor& visitor) {
  if (file.parquet) return read_parquet_rows(file.path, visitor.columns(), visitor);
  const auto stream = ByteStream::open(file.path);
  if (file.separator)
    read_with<RowSplitter>(*stream, visitor, file.path.string(), file.separator);
  else if (file.json_lines)
    read_with<LineSplitter>(*stream, visitor);
  else
    read_with<TextCutter>(*stream, visitor);
}

}  // namespace saccade

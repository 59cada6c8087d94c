#include "models/corpus/document_reader.h"

#include <algorithm>

#include "models/corpus/byte_stream.h"
#include "models/corpus/utf8.h"

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

template <class Cutter>
void read_with(ByteStream& stream, DocumentVisitor& visitor) {
  Cutter cutter(visitor);
  std::string buffer;
  while (stream.read(buffer)) {
    cutter.feed(buffer);
    visitor.progress(stream.consumed());
  }
  cutter.finish(buffer);
}

}  // namespace

void read_documents(const SourceFile& file, DocumentVisitor& visitor) {
  const auto stream = ByteStream::open(file.path);
  if (file.json_lines)
    read_with<LineSplitter>(*stream, visitor);
  else
    read_with<TextCutter>(*stream, visitor);
}

}  // namespace saccade

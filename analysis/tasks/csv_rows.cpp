#include "analysis/tasks/csv_rows.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "models/corpus/byte_stream.h"
#include "models/corpus/document_reader.h"
#include "models/corpus/utf8.h"
#ifdef SACCADE_CSV
#include <csv.h>
#endif

namespace saccade {
namespace {

/// Without the ending of a packed file.
std::string plain_name(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".gz" || extension == ".zst" ? file.stem().string() : file.filename().string();
}

#ifdef SACCADE_CSV
struct CsvReader {
  const std::filesystem::path& file;
  std::vector<std::string> columns;
  std::vector<std::string> fields{};
  std::vector<TaskRow> rows{};
  int64_t line = 1;       ///< that is being read
  int64_t begun = 1;      ///< where the row begins
  std::string problem{};  ///< the library is written in C: nothing may be thrown through it

  void add(std::string_view field) {
    if (!problem.empty()) return;
    if (fields.empty()) begun = line - std::count(field.begin(), field.end(), '\n');
    if (fields.size() == kMostColumns) problem = where() + ": has more than " + std::to_string(kMostColumns) + " fields";
    if (valid_utf8(field) != field.size()) problem = where() + ": is not valid UTF-8";
    fields.emplace_back(field);
  }
  void end_row() {
    if (!problem.empty()) return;
    if (rows.size() == kMostTaskRows) problem = file.string() + " holds more than " + std::to_string(kMostTaskRows) + " items";
    if (columns.empty()) {
      columns = std::move(fields);
    } else if (fields.size() != columns.size()) {
      problem = where() + ": has " + std::to_string(fields.size()) + " fields, expected " + std::to_string(columns.size());
    } else {
      nlohmann::json object = nlohmann::json::object();
      for (size_t i = 0; i < fields.size(); ++i) object[columns[i]] = fields[i];
      rows.push_back({std::move(object), where()});
    }
    fields.clear();
  }
  std::string where() const { return file.string() + ":" + std::to_string(begun); }
};

void on_field(void* text, size_t size, void* reader) { static_cast<CsvReader*>(reader)->add({static_cast<const char*>(text), size}); }
void on_row(int, void* reader) { static_cast<CsvReader*>(reader)->end_row(); }
#endif

}  // namespace

bool is_csv(const std::filesystem::path& file) {
  const std::string name = plain_name(file);
  return name.ends_with(".csv") || name.ends_with(".tsv");
}

#ifdef SACCADE_CSV
std::vector<TaskRow> read_csv_rows(const std::filesystem::path& file, const std::vector<std::string>& columns) {
  CsvReader reader{file, columns};
  csv_parser parser{};
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) throw Error("libcsv does not start");
  if (plain_name(file).ends_with(".tsv")) csv_set_delim(&parser, '\t');
  const std::string text = read_all(file, kLargestTaskData);
  bool parsed = true;
  for (size_t at = 0; parsed && at < text.size(); ++reader.line) {  // a line at a time, for the library does not count them
    const size_t size = std::min(text.find('\n', at), text.size() - 1) + 1 - at;
    parsed = csv_parse(&parser, text.data() + at, size, on_field, on_row, &reader) == size;
    at += size;
  }
  const int64_t last = --reader.line;
  parsed = parsed && csv_fini(&parser, on_field, on_row, &reader) == 0;
  const std::string error = csv_strerror(csv_error(&parser));
  csv_free(&parser);
  if (!parsed) throw DataError(file.string() + ":" + std::to_string(last) + ": " + error);
  if (!reader.problem.empty()) throw DataError(reader.problem);
  return std::move(reader.rows);
}
#else
std::vector<TaskRow> read_csv_rows(const std::filesystem::path& file, const std::vector<std::string>&) {
  throw DataError(file.string() + ": this program was built without libcsv and reads JSON lines only");
}
#endif

}  // namespace saccade

#include "analysis/tasks/csv_rows.h"

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
  int64_t row = 0;
  std::string problem{};  ///< the library is written in C: nothing may be thrown through it

  void add(std::string_view field) {
    if (!problem.empty()) return;
    if (fields.size() == kMostColumns) problem = where(row + 1) + ": has more than " + std::to_string(kMostColumns) + " fields";
    if (valid_utf8(field) != field.size()) problem = where(row + 1) + ": is not valid UTF-8";
    fields.emplace_back(field);
  }
  void end_row() {
    ++row;
    if (!problem.empty()) return;
    if (rows.size() == kMostTaskRows) problem = file.string() + " holds more than " + std::to_string(kMostTaskRows) + " items";
    if (columns.empty()) {
      columns = std::move(fields);
    } else if (fields.size() != columns.size()) {
      problem = where(row) + ": has " + std::to_string(fields.size()) + " fields, expected " + std::to_string(columns.size());
    } else {
      nlohmann::json object = nlohmann::json::object();
      for (size_t i = 0; i < fields.size(); ++i) object[columns[i]] = fields[i];
      rows.push_back({std::move(object), where(row)});
    }
    fields.clear();
  }
  std::string where(int64_t number) const { return file.string() + ": row " + std::to_string(number); }
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
  const bool parsed = csv_parse(&parser, text.data(), text.size(), on_field, on_row, &reader) == text.size() &&
                      csv_fini(&parser, on_field, on_row, &reader) == 0;
  const std::string error = csv_strerror(csv_error(&parser));
  csv_free(&parser);
  if (!parsed) throw DataError(file.string() + ": row " + std::to_string(reader.row + 1) + ": " + error);
  if (!reader.problem.empty()) throw DataError(reader.problem);
  return std::move(reader.rows);
}
#else
std::vector<TaskRow> read_csv_rows(const std::filesystem::path& file, const std::vector<std::string>&) {
  throw DataError(file.string() + ": this program was built without libcsv and reads JSON lines only");
}
#endif

}  // namespace saccade

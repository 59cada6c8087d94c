#include "analysis/tasks/mmlu_csv.h"

#include <algorithm>

#include "analysis/tasks/csv_rows.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostFiles = 1000;  ///< MMLU has 57 subjects

/// "anatomy" of "anatomy_test.csv", also packed; empty: the name is of another form.
std::string subject_of(const fs::path& file, const std::string& split) {
  const std::string name = file.filename().string();
  for (const char* packed : {"", ".gz", ".zst"})
    if (const std::string ending = "_" + split + ".csv" + packed; name.ends_with(ending) && name.size() > ending.size())
      return name.substr(0, name.size() - ending.size());
  return {};
}

/// Without a separator at its end, so that its last part is its name.
fs::path plain(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

/// Those of one subject, or of all where it is empty.
std::vector<fs::path> files_in(const fs::path& folder, const std::string& split, const std::string& subject) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string found = subject_of(entry.path(), split);
    if (found.empty() || (!subject.empty() && found != subject) || !entry.is_regular_file()) continue;
    if (files.size() == kMostFiles) throw DataError(folder.string() + " holds more than " + std::to_string(kMostFiles) + " subjects");
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

json fields_of(const TaskRow& row, const std::string& subject) {
  const json& from = row.fields;
  const auto& letter = from.at("answer").get_ref<const std::string&>();
  if (letter.size() != 1 || letter[0] < 'A' || letter[0] > 'D')
    throw DataError(row.where + ": its last field is \"" + letter + "\", expected a letter from A to D");
  return {{"question", from.at("question")},
          {"choices", {from.at("A"), from.at("B"), from.at("C"), from.at("D")}},
          {"answer", letter[0] - 'A'},
          {"subject", subject}};
}

}  // namespace

std::vector<fs::path> find_mmlu_csv(const fs::path& data, const std::string& split) {
  const fs::path whole = plain(data);
  const bool is_file = fs::is_regular_file(whole);
  const std::string subject = is_file ? subject_of(whole, "test") : "";
  if (is_file && subject.empty()) return {};
  if (is_file && split == "test") return {data};
  const fs::path folder = is_file ? whole.parent_path() : whole;
  std::vector<fs::path> places{folder, folder / split};
  if (folder.filename() == "test") places.push_back(folder.parent_path() / split);
  for (const fs::path& place : places)
    if (std::vector<fs::path> files = files_in(place, split, subject); !files.empty()) return files;
  return {};
}

std::vector<TaskRow> read_mmlu_csv(const std::vector<fs::path>& files) {
  std::vector<TaskRow> rows;
  size_t bytes = 0;
  for (const fs::path& file : files) {
    const std::string subject = subject_of(file, subject_of(file, "test").empty() ? "dev" : "test");
    for (const TaskRow& row : read_csv_rows(file, {"question", "A", "B", "C", "D", "answer"})) {
      rows.push_back({fields_of(row, subject), row.where});
      bytes += row.fields.dump().size();
      if (rows.size() > kMostTaskRows || bytes > static_cast<size_t>(kLargestTaskData))
        throw DataError(file.string() + ": with the files before it, more than " + std::to_string(kMostTaskRows) + " items or " +
                        std::to_string(kLargestTaskData) + " bytes");
    }
  }
  if (rows.empty()) throw DataError(files.front().string() + " holds no items");
  return rows;
}

}  // namespace saccade

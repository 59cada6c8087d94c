#include "analysis/runs/run_notes.h"

#include <algorithm>
#include <sstream>

#include "analysis/runs/files.h"
#include "analysis/runs/small_files.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/json.h"

namespace saccade {
namespace {

namespace fs = std::filesystem;

fs::path notes_file(const fs::path& directory) { return directory / "notes.json"; }

}  // namespace

RunNotes read_notes(const fs::path& directory) {
  const fs::path path = notes_file(directory);
  std::error_code error;
  if (!fs::exists(path, error) && !error) return {};
  try {
    const nlohmann::json json = parse_json_or_discard(read_small_text(path, kLargestNote));
    return {json.at("starred").get<bool>(), json.at("tags").get<std::vector<std::string>>(), json.at("note").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    throw DataError(path.string() + " is no file of notes; expected {\"starred\": …, \"tags\": […], \"note\": …}");
  }
}

void write_notes(const fs::path& directory, const RunNotes& notes) {
  read_notes(directory);
  const nlohmann::json json{{"starred", notes.starred}, {"tags", notes.tags}, {"note", notes.note}};
  replace_text(notes_file(directory), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::string> tags_in(const std::string& text) {
  std::vector<std::string> tags;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t begin = part.find_first_not_of(" \t"), end = part.find_last_not_of(" \t");
    if (begin == std::string::npos) continue;
    part = part.substr(begin, end - begin + 1);
    if (std::find(tags.begin(), tags.end(), part) == tags.end()) tags.push_back(part);
  }
  return tags;
}

std::string tags_text(const std::vector<std::string>& tags) {
  std::string text;
  for (const std::string& tag : tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

}  // namespace saccade

#include "analysis/runs/run_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "analysis/runs/files.h"
#include "analysis/runs/record_json.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/runs/small_files.h"
#include "kernels/engine/error.h"
#include "models/config/config.h"
#include "models/config/old_names.h"
#include "models/config_text.h"
#include "models/corpus/crc32c.h"
#include "models/corpus/sha256.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kFormat = 1;
constexpr std::string_view kSeal = ",\n  \"crc32c\": \"";

/// What stands before the last key, which is a CRC-32C of it, with that key and the end of the object.
std::string sealed_text(std::string text) {
  const std::string digits = crc32c_digits(text);
  return text.append(kSeal).append(digits) + "\"\n}\n";
}

/// False for what an earlier version wrote, without a CRC-32C and without keys that it did not know.
bool is_edited(const std::string& text, const nlohmann::json& object) {
  static constexpr std::array<std::string_view, 13> kKeys{"format_version", "name",       "title",  "state",      "message",
                                                          "step",           "steps",      "seed",   "parameters", "updated",
                                                          "config",         "provenance", "records"};
  const size_t seal = text.rfind(kSeal);
  if (seal != std::string::npos) return sealed_text(text.substr(0, seal)) != text;
  const auto items = object.items();
  return std::any_of(items.begin(), items.end(),
                     [](const auto& item) { return std::find(kKeys.begin(), kKeys.end(), item.key()) == kKeys.end(); });
}

/// The value of a key that has to be there, once it is known to be of that kind. Throws UsageError, or nlohmann's exception without it.
const nlohmann::json& checked(const nlohmann::json& object, const std::string& key, Setting::Kind kind, const std::string& parent = "") {
  Setting field;
  field.name = key, field.kind = kind;
  const nlohmann::json& value = object.at(key);
  check_setting(field, value, parent + "/" + key);
  return value;
}

std::string text_of(const nlohmann::json& object, const char* key) { return checked(object, key, Setting::Kind::text).get<std::string>(); }

RunState state_of(const nlohmann::json& object) try { return parse_run_state(text_of(object, "state")); } catch (const DataError& error) {
  throw UsageError(std::string("/state: ") + error.what());
}

void check_provenance(const nlohmann::json& provenance) {
  if (!provenance.is_object()) throw UsageError("/provenance is no object { … }");
  for (const char* key : {"code_version", "config_hash", "corpus_hash", "device", "gpu", "host", "precision", "processor", "started",
                          "tokenizer", "tokenizer_hash"})
    if (provenance.contains(key)) checked(provenance, key, Setting::Kind::text, "/provenance");
}

/// Throws UsageError and nlohmann's exceptions.
RunInfo info_from(const nlohmann::json& object, const fs::path& directory, const fs::path& path) {
  RunInfo info;
  info.directory = directory;
  info.name = text_of(object, "name");
  info.title = text_of(object, "title");
  info.state = state_of(object);
  info.config = object.at("config");
  info.provenance = object.at("provenance");
  info.parameters = count_of(object, "parameters");
  info.seed = count_of(object, "seed");
  info.steps = count_of(object, "steps");
  info.step = count_of(object, "step");
  info.message = text_of(object, "message");
  if (object.contains("records")) info.records = count_of(object, "records");
  check_stored_types(info.config);
  check_provenance(info.provenance);
  const std::string recorded = info.provenance.value("config_hash", "");
  info.config_edited = !recorded.empty() && recorded != config_hash(info.config);
  info.old_names = rename_settings(info.config, path.string());
  fill_old_defaults(info.config);
  if (info.config != object.at("config")) info.provenance["config_hash"] = config_hash(info.config);
  return info;
}

}  // namespace

std::string config_hash(const nlohmann::json& resolved) { return hex(sha256(resolved.dump())); }

std::string training_task(const RunInfo& info) try {
  return info.config.value("data", nlohmann::json::object()).value("task", std::string());
} catch (const nlohmann::json::exception&) {
  throw DataError((info.directory / "run.json").string() + " is damaged: /config/data/task is no name");
}

int64_t forked_step(const RunInfo& info) try {
  return info.provenance.contains("parent") ? info.provenance.at("parent").at("step").get<int64_t>() : 0;
} catch (const nlohmann::json::exception&) {
  throw DataError((info.directory / "run.json").string() + " is damaged: /provenance/parent/step is no step");
}

std::vector<uint64_t> skipped_positions(const RunInfo& info) try {
  return info.provenance.value("skipped_positions", std::vector<uint64_t>());
} catch (const nlohmann::json::exception&) {
  throw DataError((info.directory / "run.json").string() + " is damaged: /provenance/skipped_positions is no list of positions");
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

bool holds_run(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "run.json", ignored);
}

bool looks_like_run(const fs::path& directory) {
  std::error_code ignored;
  return holds_run(directory) || fs::exists(directory / "journal.jsonl", ignored);
}

RunInfo read_run_info(const fs::path& directory) {
  const fs::path path = directory / "run.json";
  if (!holds_run(directory)) throw DataError(directory.string() + " is no run: it has no run.json");
  try {
    const std::string text = read_small_text(path, kLargestRunJson);
    const nlohmann::json object = parse_json_text(text, path.filename().string());
    if (object.at("format_version") != kFormat)
      throw DataError(path.string() + ": format version " + object.at("format_version").dump().substr(0, 60) + ", expected 1");
    RunInfo info = info_from(object, directory, path);
    info.edited = is_edited(text, object);
    return info;
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();  // "[json.exception.out_of_range.403] key 'title' not found"
    throw DataError(path.string() + " is damaged: " + what.substr(what.find("] ") + 2));
  } catch (const UsageError& error) {  // "run.json:1:22: not JSON: …"
    throw DataError(path.string() + " is damaged: " + error.what());
  }
}

std::string last_written(const fs::path& directory) try {
  static constexpr std::string_view kUpdated = "\n  \"updated\": \"";  // as write_run_info writes it; no text in it has a line's end
  const std::string text = read_small_text(directory / "run.json", kLargestRunJson);
  if (const size_t at = text.find(kUpdated); at != std::string::npos) {
    const size_t begin = at + kUpdated.size();
    return text.substr(begin, text.find('"', begin) - begin);
  }
  return parse_json_text(text, "run.json").value("updated", "");
} catch (const std::exception&) {
  return {};
}

void write_run_info(const RunInfo& info) {
  nlohmann::ordered_json object{
      {"format_version", kFormat},     {"name", info.name},    {"title", info.title},   {"state", to_string(info.state)},
      {"message", info.message},       {"step", info.step},    {"steps", info.steps},   {"seed", info.seed},
      {"parameters", info.parameters}, {"updated", utc_now()}, {"config", info.config}, {"provenance", info.provenance}};
  if (info.records >= 0) object["records"] = info.records;
  std::string text = object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  replace_text(info.directory / "run.json", sealed_text(std::move(text)));
}

fs::path step_file(const fs::path& directory, const char* kind, int64_t step) {
  return directory / kind / ("step-" + std::to_string(step) + ".h5");
}

std::vector<int64_t> step_files(const fs::path& directory, const char* kind) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory / kind, error)) {
    const std::string name = entry.path().filename().string();
    int64_t step = 0;
    if (!name.starts_with("step-") || !name.ends_with(".h5")) continue;
    const char *begin = name.data() + 5, *end = name.data() + name.size() - 3;
    if (std::from_chars(begin, end, step).ptr == end && begin != end) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace saccade

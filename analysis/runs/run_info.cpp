#include "analysis/runs/run_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config/old_names.h"
#include "models/config_text.h"
#include "models/corpus/sha256.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {
constexpr int64_t kFormat = 1;
}

std::string config_hash(const nlohmann::json& resolved) { return hex(sha256(resolved.dump())); }

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

RunInfo read_run_info(const fs::path& directory) {
  const fs::path path = directory / "run.json";
  if (!holds_run(directory)) throw DataError(directory.string() + " is no run: it has no run.json");
  try {
    const nlohmann::json object = parse_json_text(read_text(path), path.filename().string());
    if (object.at("format_version") != kFormat)
      throw DataError(path.string() + ": format version " + object.at("format_version").dump() + ", expected 1");
    RunInfo info;
    info.directory = directory;
    info.name = object.at("name").get<std::string>();
    info.title = object.at("title").get<std::string>();
    info.state = object.at("state") == "running" ? RunState::running : RunState::created;
    for (const RunState state : {RunState::finished, RunState::stopped, RunState::diverged, RunState::failed})
      if (object.at("state") == to_string(state)) info.state = state;
    info.config = object.at("config");
    info.provenance = object.at("provenance");
    info.parameters = object.at("parameters").get<int64_t>();
    info.seed = object.at("seed").get<int64_t>();
    info.steps = object.at("steps").get<int64_t>();
    info.step = object.at("step").get<int64_t>();
    info.message = object.at("message").get<std::string>();
    if (!info.config.is_object() || !info.provenance.is_object())
      throw DataError(path.string() + " is damaged: config or provenance is no object");
    info.old_names = rename_settings(info.config, path.string());
    fill_old_defaults(info.config);
    if (info.config != object.at("config")) info.provenance["config_hash"] = config_hash(info.config);
    return info;
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();  // "[json.exception.out_of_range.403] key 'title' not found"
    throw DataError(path.string() + " is damaged: " + what.substr(what.find("] ") + 2));
  } catch (const UsageError& error) {  // "run.json:1:22: not JSON: …"
    throw DataError(path.string() + " is damaged: " + error.what());
  }
}

void write_run_info(const RunInfo& info) {
  const nlohmann::ordered_json object{
      {"format_version", kFormat},     {"name", info.name},    {"title", info.title},   {"state", to_string(info.state)},
      {"message", info.message},       {"step", info.step},    {"steps", info.steps},   {"seed", info.seed},
      {"parameters", info.parameters}, {"updated", utc_now()}, {"config", info.config}, {"provenance", info.provenance}};
  replace_text(info.directory / "run.json", object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
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

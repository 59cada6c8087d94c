#include "analysis/launchers/job_round.h"

#include <algorithm>

#include "analysis/runs/files.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/studies/study_folder.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* kFile = "tasks.json";
constexpr const char* kPrefix = "round-";

/// 0 for another name.
int64_t number_of(const std::string& name) {
  const std::string digits = name.starts_with(kPrefix) ? name.substr(std::string(kPrefix).size()) : "";
  const bool number = !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(digits) : 0;
}

std::vector<int64_t> round_numbers(const fs::path& home) {
  std::vector<int64_t> numbers;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(home / "slurm", none))
    if (const int64_t number = number_of(entry.path().filename().string()); number > 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Throws DataError for a path that leads out of the home folder.
fs::path path_inside(const Json& text, const fs::path& file) {
  const fs::path path = text.get<std::string>();
  const bool outside = path.empty() || path.is_absolute() || path.string().find('\0') != std::string::npos ||
                       std::find(path.begin(), path.end(), fs::path("..")) != path.end();
  if (outside) throw DataError(file.string() + " is damaged: it names a run or a config outside its folder");
  return path;
}

JobRound round_of(const Json& object, const std::string& name, const fs::path& file) {
  JobRound round{name, {}, count_of(object, "cpus"), count_of(object, "gpus")};
  if (round.cpus < 1) throw DataError(file.string() + " is damaged: no cores");
  for (const Json& task : object.at("tasks")) {
    round.tasks.emplace_back();
    for (const Json& run : task)
      round.tasks.back().push_back({path_inside(run.at("run"), file), path_inside(run.at("config"), file), count_of(run, "step")});
  }
  return round;
}

}  // namespace

fs::path round_folder(const fs::path& home, const std::string& name) { return home / "slurm" / name; }

void write_round(const fs::path& home, JobRound& round) {
  const std::vector<int64_t> numbers = round_numbers(home);
  round.name = kPrefix + std::to_string(numbers.empty() ? 1 : numbers.back() + 1);
  Json tasks = Json::array();
  for (const std::vector<RoundRun>& task : round.tasks) {
    Json runs = Json::array();
    for (const RoundRun& run : task) runs.push_back({{"run", run.run.string()}, {"config", run.config.string()}, {"step", run.step}});
    tasks.push_back(runs);
  }
  const fs::path folder = round_folder(home, round.name);
  make_run_folder(folder);
  write_sealed_json(folder / kFile, {{"format_version", 1}, {"cpus", round.cpus}, {"gpus", round.gpus}, {"tasks", tasks}});
}

JobRound read_round(const fs::path& home, const std::string& name) try {
  const fs::path file = round_folder(home, name) / kFile;
  return round_of(read_sealed_json(file), name, file);
} catch (const Json::exception&) {
  throw DataError((round_folder(home, name) / kFile).string() + " is damaged");
} catch (const UsageError& error) {
  throw DataError((round_folder(home, name) / kFile).string() + " is damaged: " + error.what());
}

std::vector<JobRound> read_rounds(const fs::path& home) {
  std::vector<JobRound> rounds;
  std::error_code none;
  for (const int64_t number : round_numbers(home))
    if (const std::string name = kPrefix + std::to_string(number); fs::exists(round_folder(home, name) / kFile, none))
      rounds.push_back(read_round(home, name));
  return rounds;
}

bool is_stopped(const fs::path& home) {
  std::error_code none;
  return holds_study(home) ? read_study_state(home).stopped : fs::exists(home / "slurm" / "stopped", none);
}

void set_stopped(const fs::path& home, bool stopped) {
  if (holds_study(home)) return edit_study_state(home, [&](StudyState& state) { state.stopped = stopped; });
  if (stopped)
    replace_text(home / "slurm" / "stopped", "");
  else
    remove_run_file(home / "slurm" / "stopped");
}

}  // namespace saccade

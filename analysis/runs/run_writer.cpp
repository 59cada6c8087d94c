#include "analysis/runs/run_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

/// Whether a run was made here and ended before it began to train: then nothing of worth is in it.
bool never_began(const fs::path& directory) try { return read_run_info(directory).state == RunState::created; } catch (const DataError&) {
  return false;
}

/// Creates the directory, or accepts one that is empty but for what an interrupted start left, or the job script that trains in it.
void claim(const fs::path& directory) {
  std::error_code error;
  make_folders_above(directory);
  if (!fs::is_directory(directory)) make_run_folder(directory);
  if (holds_run(directory)) {
    if (never_began(directory)) return;
    throw UsageError(directory.string() + " already holds a run; resume it or name another directory");
  }
  fs::directory_iterator entries(directory, error);
  if (error) throw DataError("cannot read " + directory.string() + ": " + error.message());
  for (const auto& entry : entries)
    if (const std::string name = entry.path().filename().string(); name != "lock" && name != "lease" && name != "ranks" &&
                                                                   name != "slurm" && !is_aside(name, "run.json") &&
                                                                   !is_aside(name, "ranks") && !is_aside(name, "lease"))
      throw UsageError(directory.string() + " is not empty and holds no run; name a new directory");
}

}  // namespace

RunWriter::RunWriter(RunLock lock, RunInfo info, const std::function<void(const std::string&)>& report)
    : lock_(std::move(lock)),
      info_(std::move(info)),
      journal_(info_.directory / "journal.jsonl", report, info_.records),
      log_(open_run_file(info_.directory / "log.txt", O_RDWR | O_CREAT | O_APPEND)) {
  for (const char* kind : {kCheckpoints, kCaptures}) {
    make_run_folder(info_.directory / kind);
    remove_abandoned_files(info_.directory / kind);
  }
  remove_abandoned_files(info_.directory);
  if (!lock_note().empty()) log(lock_note());
}

void RunWriter::append(const Record& record) {
  require();
  journal_.append(record);
}

void RunWriter::require_free(const fs::path& directory) {
  if (const auto holder = lock_holder(directory)) throw RunInUse(directory.string() + " is in use by " + describe(*holder));
  claim(directory);
}

RunWriter RunWriter::create(const fs::path& directory, RunInfo info) {
  require_free(directory);
  RunLock lock(directory);
  claim(directory);                                       // nobody else came first
  for (const char* left : {"journal.jsonl", "run.json"})  // of an interrupted start, run.json last
    if (const std::string problem = remove_run_file(directory / left); !problem.empty()) throw DataError(problem);
  info.directory = directory;
  info.state = RunState::created;
  info.records = 0;
  info.provenance["started"] = utc_now();
  info.provenance["host"] = host_name();
  write_run_info(info);
  return {std::move(lock), std::move(info), [](const std::string&) {}};
}

RunWriter RunWriter::take_up(const fs::path& directory, const std::function<void(const std::string&)>& report, bool take_over,
                             const std::atomic<bool>* stop) {
  if (!holds_run(directory)) throw DataError(directory.string() + " is no run: it has no run.json");
  RunLock lock(directory, {take_over, stop, report});
  return {std::move(lock), read_run_info(directory), report};
}

/// With the number of records that the journal is known to have: these are on the disk first, so that a power cut takes none of them.
void RunWriter::save_info() {
  require();
  journal_.sync();
  info_.records = journal_.next_number();
  write_run_info(info_);
}

void RunWriter::set_state(RunState state, int64_t step, const std::string& message) {
  info_.state = state;
  info_.step = step;
  info_.message = message;
  append(state_record(state, step, message));
  save_info();
}

void RunWriter::add(const TaskScoreRecord& scores) {
  append(to_record(scores));
  save_info();
}

void RunWriter::record_failure(int64_t step, const std::string& message) noexcept try {
  info_.state = RunState::failed;
  info_.step = step;
  info_.message = message;
  require();
  write_run_info(info_);  // with the records that were known before
  log("failed at step " + std::to_string(step) + ": " + message);
} catch (...) {  // run.json then keeps saying "running", which without a lock reads as crashed; or the run is another process's by now
}

void RunWriter::set_step(int64_t step) {
  info_.step = step;
  save_info();
}

/// All records up to this step were written before those that are lost; −1: not even those of step 0.
int64_t RunWriter::intact_step(const JournalHole& hole) const {
  // Unless only whole steps are lost, something of after_step itself may be; or run.json, written at its step, knew all records then.
  const int64_t known = info_.records > 0 && hole.first >= info_.records ? info_.step : -1;
  return std::max(known, hole.after_step - (hole.steps_only ? 0 : 1));
}

std::optional<int64_t> RunWriter::step_before_loss(const std::vector<int64_t>& checkpoints) const {
  std::optional<int64_t> earliest;
  for (const JournalHole& hole : journal_.holes())
    for (auto step = checkpoints.rbegin(); step != checkpoints.rend(); ++step)
      if (*step <= intact_step(hole)) {
        earliest = std::min(earliest.value_or(*step), *step);
        break;
      }
  return earliest;
}

void RunWriter::change_config(int64_t step, const nlohmann::json& config, const std::vector<std::string>& changes) {
  require();
  info_.config = config;
  info_.provenance["config_hash"] = config_hash(config);
  info_.provenance["changes"].push_back({{"step", step}, {"set", changes}});
  write_run_info(info_);
}

void RunWriter::skip_batch(uint64_t position) {
  require();
  info_.provenance["skipped_positions"].push_back(position);
  write_run_info(info_);
}

void RunWriter::give_up_behind(int64_t step) {
  require();
  for (const char* kind : {kCaptures, kCheckpoints})
    for (const int64_t later : step_files(info_.directory, kind))
      if (later > step)
        if (const std::string problem = remove_run_file(step_file(info_.directory, kind, later)); !problem.empty())
          throw DataError(problem);
}

void RunWriter::resume_at(int64_t step) {
  int64_t repeats = -1;
  const std::vector<JournalHole>& holes = journal_.holes();
  for (auto hole = holes.rbegin(); hole != holes.rend() && (step == 0 || step <= intact_step(*hole)); ++hole) repeats = hole->first;
  const bool open = !holes.empty() && holes.back().before_step < 0;
  const int64_t recorded = std::max(journal_.largest_step(), forked_step(info_));  // a fork's first steps are its parent's
  if (!open && step > recorded) journal_.skip(step - recorded);                    // each had a record at least
  append(resume_record(step, repeats));
  journal_.sync();
}

void RunWriter::add(const EvaluationRecord& evaluation) {
  append(to_record(evaluation));
  journal_.sync();
}

void RunWriter::add(int64_t step, const std::vector<Capture>& captures) {
  require();
  write_captures(step_file(info_.directory, kCaptures, step), captures);
}

void RunWriter::write_results() {
  require();
  journal_.sync();
  write_results_file(info_);
}

void RunWriter::log(const std::string& line) {
  struct stat before {};
  if (::fstat(log_.get(), &before) == 0 && write_all(log_.get(), utc_now() + "  " + line + "\n")) return;
  if (log_problem_.empty()) log_problem_ = "lines of log.txt could not be written: " + std::string(std::strerror(errno));
  [[maybe_unused]] const int cut = ::ftruncate(log_.get(), before.st_size);  // no half line; if that fails too, nothing is lost by it
}

void append_log_line(const fs::path& directory, const std::string& line) noexcept try {
  const Descriptor log = open_run_file_if_there(directory / "log.txt", O_WRONLY | O_APPEND);
  if (log) static_cast<void>(write_all(log.get(), utc_now() + "  " + line + "\n"));
} catch (const std::exception&) {  // what led here is told elsewhere too
}

}  // namespace saccade

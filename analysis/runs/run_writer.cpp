#include "analysis/runs/run_writer.h"

#include "analysis/runs/capture_file.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

/// Creates the directory, or accepts one that is empty but for a lock that an earlier attempt left.
void claim(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw DataError("cannot create " + directory.string() + ": " + error.message());
  if (holds_run(directory)) throw UsageError(directory.string() + " already holds a run; resume it or name another directory");
  fs::directory_iterator entries(directory, error);
  if (error) throw DataError("cannot read " + directory.string() + ": " + error.message());
  for (const auto& entry : entries)
    if (entry.path().filename() != "lock") throw UsageError(directory.string() + " is not empty and holds no run; name a new directory");
}

}  // namespace

RunWriter::RunWriter(RunLock lock, RunInfo info, const std::function<void(const std::string&)>& report)
    : lock_(std::move(lock)),
      info_(std::move(info)),
      journal_(info_.directory / "journal.jsonl", report),
      log_(info_.directory / "log.txt", std::ios::app) {
  if (!log_) throw_file_error("open", info_.directory / "log.txt");
  for (const char* kind : {kCheckpoints, kCaptures}) {
    std::error_code error;
    fs::create_directory(info_.directory / kind, error);
    if (error) throw DataError("cannot create " + (info_.directory / kind).string() + ": " + error.message());
  }
}

void RunWriter::require_free(const fs::path& directory) {
  if (const auto holder = lock_holder(directory))
    throw DataError(directory.string() + " is in use by process " + std::to_string(holder->process) + " on " + holder->host);
  claim(directory);
}

RunWriter RunWriter::create(const fs::path& directory, RunInfo info) {
  require_free(directory);
  RunLock lock(directory);
  claim(directory);  // nobody else came first
  info.directory = directory;
  info.state = RunState::created;
  info.provenance["started"] = utc_now();
  info.provenance["host"] = host_name();
  write_run_info(info);
  return {std::move(lock), std::move(info), [](const std::string&) {}};
}

RunWriter RunWriter::take_up(const fs::path& directory, const std::function<void(const std::string&)>& report) {
  if (!holds_run(directory)) throw DataError(directory.string() + " is no run: it has no run.json");
  RunLock lock(directory);
  return {std::move(lock), read_run_info(directory), report};
}

void RunWriter::set_state(RunState state, int64_t step, const std::string& message) {
  info_.state = state;
  info_.step = step;
  info_.message = message;
  journal_.append(state_record(state, step, message));
  journal_.sync();
  write_run_info(info_);
}

void RunWriter::record_failure(int64_t step, const std::string& message) noexcept try {
  info_.state = RunState::failed;
  info_.step = step;
  info_.message = message;
  write_run_info(info_);
  log("failed at step " + std::to_string(step) + ": " + message);
} catch (...) {  // run.json then keeps saying "running", which without a lock reads as crashed
}

void RunWriter::set_step(int64_t step) {
  info_.step = step;
  write_run_info(info_);
}

void RunWriter::resume_at(int64_t step) {
  journal_.append(resume_record(step));
  journal_.sync();
}

void RunWriter::add(const EvaluationRecord& evaluation) {
  journal_.append(to_record(evaluation));
  journal_.sync();
}

void RunWriter::add(int64_t step, const std::vector<Capture>& captures) {
  write_captures(step_file(info_.directory, kCaptures, step), captures);
}

void RunWriter::write_results() {
  journal_.sync();
  write_results_file(info_);
}

void RunWriter::log(const std::string& line) { log_ << utc_now() << "  " << line << std::endl; }

}  // namespace saccade

#include "analysis/launchers/slurm_launcher.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "analysis/launchers/batch_script.h"
#include "analysis/launchers/signal_lead.h"
#include "analysis/launchers/submission.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/slurm/program_call.h"
#include "analysis/studies/file_lock.h"
#include "analysis/studies/study_folder.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostFruitless = 3;              ///< jobs of a run that brought it no further
constexpr std::chrono::milliseconds kPause{500};  ///< between two tries to tell jobs

/// Letters that a job's name may have anywhere.
std::string job_name(const std::string& name) {
  std::string text = "saccade-";
  for (const char c : name.substr(0, 60)) text += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return text;
}

bool is_of(const SlurmJob& job, const Submission& submission) { return job.words.find(submission.token) != std::string::npos; }

/// The job's task in its round. Throws DataError where there is no such one.
int64_t task_of(const SlurmJob& job, const JobRound& round) {
  const int64_t task = std::max<int64_t>(0, job.task);
  if (task < static_cast<int64_t>(round.tasks.size())) return task;
  throw DataError("job " + job.id + "_" + std::to_string(task) + " is of " + round.name + ", which has only " +
                  std::to_string(round.tasks.size()) + " tasks; cancel it with scancel " + job.id);
}

/// Tasks of the round that are alive.
struct Alive {
  std::set<int64_t> tasks;
  std::string job;  ///< empty where none is
};
Alive alive_of(const fs::path& home, const JobRound& round, const std::vector<SlurmJob>& jobs) {
  Alive alive;
  const auto submission = read_submission(round_folder(home, round.name));
  if (!submission) return alive;
  for (const SlurmJob& job : jobs)
    if (job.alive() && is_of(job, *submission)) alive.tasks.insert(task_of(job, round)), alive.job = job.id;
  return alive;
}

/// HOME/slurm/next/K: the jobs that submit a next round.
std::vector<fs::path> next_folders(const fs::path& home) {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(home / "slurm" / "next", none)) folders.push_back(entry.path());
  return folders;
}

/// False where Slurm does not know one of them: it has ended since it was listed, or its node has not begun its script yet. The others have
/// been told.
bool cancel(const std::vector<std::string>& options, const std::set<std::string>& ids, double seconds) {
  if (ids.empty()) return true;
  std::vector<std::string> command{"scancel"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), ids.begin(), ids.end());
  const ProgramAnswer answer = call_program(command, seconds);
  if (answer.ok()) return true;
  if (says_no_such_job(answer)) return false;
  throw NoAnswer("scancel failed: " + (answer.timed_out ? std::string("no answer") : answer.last_line()));
}

}  // namespace

std::string script_of_study(const ClusterProfile& profile, const StudyView& view, const fs::path& folder, const fs::path& program) {
  fs::path there = fs::absolute(folder).lexically_normal();
  while (!fs::is_directory(there)) there = there.parent_path();
  int64_t lead = profile.signal_lead;
  if (lead == 0) {
    const RunPaces paces = run_paces(view);
    lead = signal_lead(checkpoint_seconds(there, paces.checkpoint_bytes), paces.step_seconds);
  }
  return batch_script(profile, {"the study " + view.study.name, program, lead});
}

SlurmLauncher::SlurmLauncher(fs::path home, std::string cluster, ClusterProfile profile, fs::path program)
    : home_(fs::absolute(home).lexically_normal()),
      cluster_(std::move(cluster)),
      profile_(std::move(profile)),
      program_(std::move(program)) {
  if (!home_.has_filename()) home_ = home_.parent_path();
}

bool SlurmLauncher::is_study() const { return holds_study(home_); }
std::string SlurmLauncher::name() const { return home_.filename().string(); }

std::vector<RoundRun> SlurmLauncher::of_study() const {
  std::vector<RoundRun> runs;
  const StudyView view = view_study(home_);
  for (const WantedRun* wanted : view.ready()) {
    const fs::path config = fs::path("configs") / (wanted->name + ".json");
    if (!holds_run(home_ / "runs" / wanted->name)) replace_text(home_ / config, to_json(wanted->run.config).dump(2) + "\n");
    runs.push_back({fs::path("runs") / wanted->name, config, wanted->there ? wanted->there->step : 0});
  }
  return runs;
}

std::vector<RoundRun> SlurmLauncher::of_run() const {
  RoundRun run{".", fs::path("slurm") / "config.json", 0};
  if (holds_run(home_)) {
    const RunInfo info = read_run_info(home_);
    if (info.state == RunState::finished || info.state == RunState::diverged) return {};
    run.step = info.step;
  }
  return {run};
}

std::vector<RoundRun> SlurmLauncher::open_runs() const { return is_study() ? of_study() : of_run(); }

JobRound SlurmLauncher::round_of(std::vector<RoundRun> runs, size_t most_jobs) const {
  JobRound round{{}, {}, profile_.cpus, profile_.gpus};
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % static_cast<size_t>(profile_.pack) == 0) {
      if (round.tasks.size() == most_jobs) break;
      round.tasks.emplace_back();
    }
    round.tasks.back().push_back(std::move(runs[i]));
  }
  return round;
}

std::string SlurmLauncher::script() const {
  if (is_study()) return script_to_use(home_, script_of_study(profile_, view_study(home_), home_, program_));
  const int64_t lead = profile_.signal_lead > 0 ? profile_.signal_lead : signal_lead(0, 0);
  return script_to_use(home_, batch_script(profile_, {"the run " + name(), program_, lead}));
}

std::vector<std::string> SlurmLauncher::options(const JobRound& round) const {
  const std::string last = std::to_string(round.tasks.size() - 1), limit = std::to_string(profile_.at_a_time);
  const fs::path out = round_folder(home_, round.name) / (is_study() ? "task-%a.txt" : "task.txt");
  std::vector<std::string> options{"--output=" + out.string()};
  if (is_study()) options.push_back("--array=0-" + last + "%" + limit);
  return options;
}

std::string SlurmLauncher::submit(const JobRound& round) const {
  const fs::path folder = round_folder(home_, round.name);
  const std::string text = script();
  keep_script(home_, text);
  replace_text(folder / "script.sh", text);
  return submit_once({folder, job_name(name()), options(round), folder / "script.sh", {home_.string(), round.name}},
                     static_cast<double>(profile_.answer_seconds));
}

/// One job waits for all of them, unless another one does already.
void SlurmLauncher::submit_next(const std::vector<std::string>& after, const std::vector<SlurmJob>& known) const {
  if (after.empty() || !is_study() || profile_.next_round != "job") return;
  const std::string own = own_slurm_job();
  const std::vector<fs::path> before = next_folders(home_);
  for (const fs::path& folder : before) {
    const auto submission = read_submission(folder);
    if (!submission) continue;
    for (const SlurmJob& job : known)
      if (job.alive() && job.id != own && is_of(job, *submission)) return;
  }
  make_run_folder(home_ / "slurm" / "next");
  const fs::path folder = home_ / "slurm" / "next" / std::to_string(before.size() + 1);
  make_run_folder(folder);
  replace_text(folder / "script.sh", advance_script(profile_, {"the study " + name(), program_, 0}));
  std::string dependency = "--dependency=afterany";
  for (const std::string& job : after) dependency += ":" + job;
  submit_once({folder,
               job_name(name()) + "-next",
               {dependency, "--output=" + (folder / "out.txt").string()},
               folder / "script.sh",
               {home_.string()}},
              static_cast<double>(profile_.answer_seconds));
}

/// Runs that three jobs in a row brought no further are given up, so that rounds come to an end.
void SlurmLauncher::give_up_stuck(std::vector<RoundRun>& runs, const std::vector<JobRound>& rounds) const {
  std::map<fs::path, std::vector<int64_t>> begun;  ///< the step at the beginning of every job
  for (const JobRound& round : rounds)
    for (const auto& task : round.tasks)
      for (const RoundRun& run : task) begun[run.run].push_back(run.step);
  std::erase_if(runs, [&](const RoundRun& run) {
    const std::vector<int64_t>& steps = begun[run.run];
    const bool stuck = steps.size() >= kMostFruitless &&
                       std::all_of(steps.end() - kMostFruitless, steps.end(), [&](int64_t step) { return step == run.step; });
    if (stuck && is_study())
      edit_study_state(home_, [&](StudyState& state) {
        state.gave_up[run.run.filename().string()] = "three jobs ended without bringing it further; see slurm/" + rounds.back().name;
      });
    return stuck && is_study();
  });
}

Launched SlurmLauncher::go_on() {
  make_run_folder(home_ / "slurm");
  const FileLock lock(home_ / "slurm" / "lock");
  Launched launched{.place = place()};
  if (is_stopped(home_)) return launched;
  std::vector<JobRound> rounds = read_rounds(home_);
  for (const JobRound& round : rounds)  // a call before this one may have been cut short
    if (const auto submission = read_submission(round_folder(home_, round.name)); !submission || submission->job.empty()) submit(round);
  const std::vector<SlurmJob> known = own_jobs(static_cast<double>(profile_.answer_seconds));
  std::set<fs::path> busy;
  std::vector<std::string> after;
  for (const JobRound& round : rounds) {
    const Alive alive = alive_of(home_, round, known);
    if (!alive.job.empty()) after.push_back(alive.job);
    for (const int64_t task : alive.tasks)
      for (const RoundRun& run : round.tasks[static_cast<size_t>(task)]) busy.insert(run.run);
    launched.waiting += static_cast<int64_t>(alive.tasks.size());
  }
  std::vector<RoundRun> runs = open_runs();
  std::erase_if(runs, [&](const RoundRun& run) { return busy.contains(run.run); });
  give_up_stuck(runs, rounds);
  if (const auto room = profile_.most_jobs - launched.waiting; !runs.empty() && room > 0) {
    JobRound round = round_of(std::move(runs), static_cast<size_t>(room));
    write_round(home_, round);
    launched.entry = submit(round);
    for (const auto& task : round.tasks) launched.runs += static_cast<int64_t>(task.size());
    after.push_back(launched.entry);
  }
  submit_next(after, known);
  return launched;
}

std::vector<LaunchedJob> SlurmLauncher::jobs() {
  const std::vector<JobRound> rounds = read_rounds(home_);
  const std::vector<SlurmJob> known = own_jobs(static_cast<double>(profile_.answer_seconds));
  std::vector<LaunchedJob> jobs;
  for (const JobRound& round : rounds) {
    const auto submission = read_submission(round_folder(home_, round.name));
    for (const SlurmJob& job : known) {
      if (!submission || !job.alive() || !is_of(job, *submission)) continue;
      LaunchedJob line{job.id + (job.task >= 0 ? "_" + std::to_string(job.task) : ""), job.state, job.reason, {}, true};
      for (const RoundRun& run : round.tasks[static_cast<size_t>(task_of(job, round))])
        line.runs.push_back(run.run == "." ? name() : run.run.filename().string());
      jobs.push_back(std::move(line));
    }
  }
  return jobs;
}

SlurmLauncher::Told SlurmLauncher::tell_to_stop(double seconds) const {
  const std::vector<SlurmJob> known = own_jobs(seconds);
  std::vector<fs::path> folders = next_folders(home_);
  for (const JobRound& round : read_rounds(home_)) folders.push_back(round_folder(home_, round.name));
  std::set<std::string> waiting, running;
  Told told;
  for (const fs::path& folder : folders) {
    const auto submission = read_submission(folder);
    for (const SlurmJob& job : known) {
      if (!submission || !job.alive() || !is_of(job, *submission)) continue;
      ++told.stopped.jobs;
      (job.state == "PENDING" ? waiting : running).insert(job.id);
      told.stopped.running += job.state != "PENDING";
    }
  }
  told.all = cancel({"--state=PENDING"}, waiting, seconds);
  // Not SIGTERM, which is followed by SIGKILL half a minute later: a checkpoint takes as long as it takes. A second one is the same as one.
  told.all = cancel({"--state=RUNNING", "--batch", "--signal=USR2"}, running, seconds) && told.all;
  return told;
}

Stopped SlurmLauncher::stop() {
  set_stopped(home_, true);
  const auto seconds = static_cast<double>(profile_.answer_seconds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Told told = tell_to_stop(seconds);
  const Stopped first = told.stopped;
  while (!told.all && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    told = tell_to_stop(seconds);
  }
  if (!told.all)
    throw NoAnswer("scancel says that a job which squeue lists is not known; nothing new is begun, try again to stop what runs");
  return first;
}

}  // namespace saccade

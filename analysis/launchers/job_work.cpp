#include "analysis/launchers/job_work.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "analysis/launchers/job_round.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/studies/study_folder.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr auto kPause = std::chrono::milliseconds(50);

/// A run of the task, and how its process ended.
struct Work {
  std::string name;
  fs::path directory, config, log;
  pid_t process = 0;
  bool ended = true;
  bool new_run = false;  ///< it had not begun
  int code = 0;          ///< exit code
  int signal = 0;        ///< that ended it
};

std::optional<RunInfo> info_of(const fs::path& run) try {
  return holds_run(run) ? std::optional(read_run_info(run)) : std::nullopt;
} catch (const Error&) {
  return {};
}

bool has_ended(const fs::path& run) {
  const auto info = info_of(run);
  return info && (info->state == RunState::finished || info->state == RunState::diverged);
}

/// Whether the config leaves the number of threads open.
bool takes_any_threads(const fs::path& config) {
  return parse_json_text(read_text(config), config.string()).value("threads", int64_t{0}) == 0;
}

std::vector<std::string> command_of(const Work& work, const JobRound& round, size_t side_by_side, const fs::path& program) {
  std::vector<std::string> command{program.string(), "-q"};
  if (holds_run(work.directory)) {
    command.insert(command.end(), {"resume", work.directory.string()});
  } else {
    command.insert(command.end(), {"train", work.config.string(), "--out", work.directory.string()});
    const int64_t share = std::max<int64_t>(1, round.cpus / static_cast<int64_t>(side_by_side));
    if (takes_any_threads(work.config)) command.insert(command.end(), {"--set", "threads=" + std::to_string(share)});
  }
  if (round.gpus > 0) command.insert(command.end(), {"--gpus", std::to_string(round.gpus)});
  return command;
}

/// Ends at a checkpoint when this process dies.
void start(Work& work, const std::vector<std::string>& command) {
  const Descriptor log = open_run_file(work.log, O_WRONLY | O_CREAT | O_TRUNC);
  const pid_t parent = ::getpid();
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t end_of_time, before;  // a signal that comes before the program is ready for it waits
  sigemptyset(&end_of_time), sigaddset(&end_of_time, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &end_of_time, &before);
  const pid_t child = ::fork();
  if (child != 0) ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw Error("cannot start " + command.front() + ": " + std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(kToBeContinued);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  work.process = child;
  work.ended = false;
}

/// Waits for all; tells them to end once `stop` comes.
void wait_for(std::vector<Work>& works, const std::atomic<bool>& stop) {
  bool told = false;
  while (std::any_of(works.begin(), works.end(), [](const Work& work) { return !work.ended; })) {
    for (Work& work : works) {
      int status = 0;
      if (work.ended || ::waitpid(work.process, &status, WNOHANG) != work.process) continue;
      work.ended = true;
      work.code = WIFSIGNALED(status) ? 1 : WEXITSTATUS(status);
      work.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      // A run that was not there and that this process refuses (2) to train: another one made it while this one prepared.
      if (work.new_run && work.code == 2 && holds_run(work.directory)) work.code = kRunInUse;
    }
    if (stop && !told)
      for (const Work& work : works)
        if (!work.ended) ::kill(work.process, SIGUSR2);
    told = stop;
    std::this_thread::sleep_for(kPause);
  }
}

std::string last_line(const fs::path& log) try {
  std::string text = read_text(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
} catch (const Error&) {
  return "it said nothing";
}

/// What became of a process: "", or why its run is not tried again. What fails while a job is told to end, with everything in it, may well
/// go on in the next one.
std::string problem_of(const Work& work, bool asked) {
  if (work.code == 0 || work.code == kToBeContinued || work.code == kRunInUse || work.signal != 0) return "";
  if (asked) return "";
  if (has_ended(work.directory)) return "";  // diverged
  return work.code == 130 ? "stopped by hand" : last_line(work.log);
}

bool to_be_continued(const Work& work, bool asked) {
  if (work.code == kToBeContinued) return true;
  if (!asked) return false;
  if (work.signal != 0) return work.signal == SIGUSR2 || work.signal == SIGTERM;
  return work.code != 0 && work.code != kRunInUse && !has_ended(work.directory);
}

std::string describe(const Work& work) {
  if (work.signal != 0) return "ended by signal " + std::to_string(work.signal);
  if (work.code == kToBeContinued) return "to be continued";
  if (work.code == kRunInUse) return "another process trains it";
  return work.code == 0 ? "finished" : "exit code " + std::to_string(work.code) + ", " + last_line(work.log);
}

int code_of(const std::vector<Work>& works, const fs::path& home, bool asked) {
  int code = 0;
  for (const Work& work : works) {
    if (to_be_continued(work, asked)) return is_stopped(home) ? 130 : kToBeContinued;
    if (work.code != 0 && (code == 0 || code == kRunInUse)) code = work.code;
  }
  return code;
}

}  // namespace

int work_on_task(const fs::path& home, const std::string& round_name, int64_t task, const fs::path& program, const std::atomic<bool>& stop,
                 const std::function<void(const std::string&)>& say) {
  const JobRound round = read_round(home, round_name);
  if (task < 0 || task >= static_cast<int64_t>(round.tasks.size()))
    throw UsageError("task " + std::to_string(task) + " of " + round_name + "; expected one below " + std::to_string(round.tasks.size()));
  if (is_stopped(home)) {
    say("stopped by hand: nothing is done");
    return 130;
  }
  const std::vector<RoundRun>& runs = round.tasks[static_cast<size_t>(task)];
  const StudyState state = holds_study(home) ? read_study_state(home) : StudyState{};
  std::vector<Work> works;
  for (const RoundRun& run : runs) {
    Work work{(home / run.run).lexically_normal().filename().string(), (home / run.run).lexically_normal(), home / run.config, {}};
    if (work.name.empty()) work.name = home.filename().string(), work.directory = home;
    work.log = round_folder(home, round_name) / (work.name + ".txt");
    if (has_ended(work.directory) || state.gave_up.contains(work.name) || stop) continue;
    const auto info = info_of(work.directory);
    say(work.name + (info ? ": taken up from step " + std::to_string(info->step) : ": started"));
    work.new_run = !holds_run(work.directory);
    start(work, command_of(work, round, runs.size(), program));
    works.push_back(std::move(work));
  }
  if (works.empty() && stop) return kToBeContinued;
  wait_for(works, stop);
  for (const Work& work : works) {
    say(work.name + ": " + describe(work));
    if (const std::string problem = problem_of(work, stop); !problem.empty() && holds_study(home))
      edit_study_state(home, [&](StudyState& s) { s.gave_up[work.name] = problem; });
  }
  return code_of(works, home, stop);
}

}  // namespace saccade

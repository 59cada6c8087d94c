#include "app/cli/rank_processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "analysis/launchers/job_work.h"
#include "app/cli/command.h"
#include "app/cli/exit_code.h"
#include "kernels/engine/clock.h"

namespace saccade::cli {
namespace {

constexpr size_t kMostRanks = 1024;
std::array<volatile pid_t, kMostRanks> children{};  // what the signal handler passes signals on to; 0: none

void pass_on(int signal) {
  for (const volatile pid_t& child : children)
    if (child > 0) ::kill(child, signal);
}

/// As the caller has it where it is ignored, as nohup does.
void pass_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = pass_on;
    ::sigaction(signal, &action, nullptr);
  }
  unblock_end_of_time();
}

struct Ended {
  int code = 0;
  int signal = 0;  ///< 0: it ended by itself
  bool stopped() const { return code == 130 || code == kToBeContinued; }
};

/// Waits for all; see start_rank_processes.
int wait_for(const std::vector<pid_t>& processes, double patience) {
  std::vector<std::optional<Ended>> ended(processes.size());
  double over = 0;  // since when the others have no more to do
  bool killed = false;
  while (std::any_of(ended.begin(), ended.end(), [](const auto& e) { return !e; })) {
    for (size_t r = 0; r < processes.size(); ++r) {
      int status = 0;
      if (ended[r] || ::waitpid(processes[r], &status, WNOHANG) != processes[r]) continue;
      children[r] = 0;
      ended[r] =
          WIFSIGNALED(status) ? Ended{killed ? 0 : 1, WTERMSIG(status)} : Ended{WEXITSTATUS(status), 0};  // who was killed here: others
      if (ended[r]->signal != 0 && !killed)
        warn("rank " + std::to_string(r) + " (process " + std::to_string(processes[r]) + ") was ended by signal " +
             std::to_string(ended[r]->signal) + " (" + ::strsignal(ended[r]->signal) + ")");
      if (over == 0 && (r == 0 || (ended[r]->code != 0 && !ended[r]->stopped()))) over = now();
    }
    if (over > 0 && !killed && now() - over > patience) {
      killed = true;
      for (size_t r = 0; r < processes.size(); ++r)
        if (!ended[r]) {
          warn("rank " + std::to_string(r) + " (process " + std::to_string(processes[r]) + ") did not end and is killed");
          ::kill(processes[r], SIGKILL);
        }
    }
    (void)::poll(nullptr, 0, 20);
  }
  if (ended.front()->code != 0) return ended.front()->code;
  const auto other = std::find_if(ended.begin(), ended.end(), [](const auto& e) { return e->code != 0 && !e->stopped(); });
  return other == ended.end() ? 0 : (*other)->code;
}

}  // namespace

std::optional<RankSockets> start_rank_processes(int count, double patience, int& code) {
  if (static_cast<size_t>(count) > kMostRanks) throw UsageError(std::to_string(count) + " ranks; expected at most 1024 on one host");
  std::vector<RankSockets> sockets = connected_ranks(count);
  const pid_t parent = ::getpid();
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int r = 0; r < count; ++r) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a checkpoint, then the end
      if (::getppid() != parent) ::raise(SIGTERM);
      children = {};
      RankSockets mine = std::move(sockets[static_cast<size_t>(r)]);
      return mine;
    }
    if (child < 0) {
      const std::string why = std::strerror(errno);
      for (const pid_t started : processes) ::kill(started, SIGKILL), ::waitpid(started, nullptr, 0);
      throw Error("cannot start rank " + std::to_string(r) + ": " + why);
    }
    processes.push_back(child);
    children[static_cast<size_t>(r)] = child;
  }
  sockets.clear();
  pass_on_signals();
  code = wait_for(processes, patience);
  return {};
}

}  // namespace saccade::cli

#include "analysis/slurm/program_call.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"

extern char** environ;

namespace saccade {
namespace {

constexpr size_t kMostOutput = size_t{64} << 20;
constexpr int kPoll = 20;  // ms

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(size_t which) { ::close(std::exchange(ends[which], -1)); }
  /// Takes what is there; closes the end when nobody writes any more.
  void read_into(std::string& text) {
    std::array<char, 65536> buffer{};
    while (ends[0] >= 0) {
      const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return close_end(0);
      text.append(buffer.data(), std::min(static_cast<size_t>(count), kMostOutput - std::min(kMostOutput, text.size())));
    }
  }
};

/// In a group of its own, so that what it starts can be ended with it. 0 where it cannot be started, with errno.
pid_t start(const std::vector<std::string>& command, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  errno = failed;
  return failed == 0 ? child : 0;
}

}  // namespace

std::string ProgramAnswer::last_line() const {
  std::string text = err.find_first_not_of(" \n") != std::string::npos ? err : out;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

ProgramAnswer call_program(const std::vector<std::string>& command, double seconds) {
  Pipe out, err;
  const pid_t child = start(command, out, err);
  if (child == 0) return {127, false, "", command.front() + ": " + std::strerror(errno)};
  out.close_end(1), err.close_end(1);
  ProgramAnswer answer;
  const double end = now() + seconds;
  int status = 0;
  bool ended = false;
  while (!ended || out.ends[0] >= 0 || err.ends[0] >= 0) {
    std::array<pollfd, 2> waiting{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
    (void)::poll(waiting.data(), waiting.size(), kPoll);
    out.read_into(answer.out), err.read_into(answer.err);
    ended = ended || ::waitpid(child, &status, WNOHANG) == child;
    if (now() < end) continue;
    if (!ended) {
      answer.timed_out = true;
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
    break;
  }
  answer.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return answer;
}

}  // namespace saccade

#include "analysis/remote/inspect_relay.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "kernels/engine/error.h"

extern char** environ;

namespace saccade {
namespace {

constexpr size_t kLongestAnswer = size_t{256} << 20, kMostWords = 4096;

}  // namespace

InspectRelay::InspectRelay(const std::filesystem::path& program, const std::filesystem::path& run, int64_t checkpoint) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write.get(), STDERR_FILENO);
  std::vector<std::string> words{program.string(), "-q", "inspect", run.string(), "--serve"};
  if (checkpoint > 0) words.insert(words.end(), {"--checkpoint", std::to_string(checkpoint)});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = ::posix_spawn(&process_, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw Error("cannot start " + words.front() + ": " + std::strerror(failed));
  to_ = std::move(in.write), from_ = std::move(out.read), errors_ = std::move(err.read);
}

void InspectRelay::kill() { ::kill(process_, SIGKILL); }

InspectRelay::~InspectRelay() {
  kill();
  ::waitpid(process_, nullptr, 0);
}

std::string InspectRelay::last_words() {
  std::string words(kMostWords, '\0');
  const ssize_t got = ::read(errors_.get(), words.data(), words.size());
  words.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words.empty() ? "the inspection process ended" : words.substr(words.rfind('\n') + 1);
}

std::string InspectRelay::answer(std::string_view line) {
  const std::lock_guard<std::mutex> lock(one_);
  if (!write_all(to_.get(), std::string(line) + "\n")) throw Error(last_words());
  std::array<char, 65536> buffer{};
  for (size_t searched = 0;;) {
    const size_t end = held_.find('\n', searched);
    if (end != std::string::npos) {
      std::string answer = held_.substr(0, end);
      held_.erase(0, end + 1);
      return answer;
    }
    searched = held_.size();
    const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || held_.size() > kLongestAnswer) throw Error(last_words());
    held_.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace saccade

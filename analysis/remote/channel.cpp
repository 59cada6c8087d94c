#include "analysis/remote/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "analysis/remote/agent.h"
#include "kernels/engine/clock.h"
#include "models/corpus/corpus.h"

extern char** environ;

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr size_t kMostAnswer = size_t{300} << 20, kMostWords = 8192;

void let_not_wait(const Descriptor& file) { ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) | O_NONBLOCK); }

bool changes_something(const Json& head) { return AgentCommands::knows(head.value("ask", "")); }

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string agent_command(const HostProfile& profile) {
  std::string command = profile.program + " -q agent --stdio --gpu-command " + shell_quoted(profile.gpu_command);
  if (!profile.folder.empty())
    command = "mkdir -p " + shell_path(profile.folder) + " && exec " + command + " --serve " + shell_path(profile.folder);
  return command;
}

/// Empty where nobody listens.
Descriptor connect_to(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return Descriptor();
  std::copy(text.begin(), text.end(), address.sun_path);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Descriptor();
  return socket;
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_path(const std::string& path) {
  return path.starts_with("~/") ? "\"$HOME\"/" + shell_quoted(path.substr(2)) : shell_quoted(path);
}

fs::path channel_socket(const std::string& name) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path folder = runtime && *runtime == '/' ? fs::path(runtime) / "saccade" : cache_folder() / "channels";
  return folder / name;
}

std::vector<std::string> ssh_command(const HostProfile& profile, const std::string& command) {
  const char* ssh = std::getenv("SACCADE_SSH");
  return {ssh && *ssh ? ssh : "ssh", "-T", profile.ssh, command};
}

Channel::Channel(Descriptor in, Descriptor out, double patience) : in_(std::move(in)), out_(std::move(out)), patience_(patience) {
  std::signal(SIGPIPE, SIG_IGN);
  let_not_wait(in_), let_not_wait(out_);
}

std::unique_ptr<Channel> Channel::open(const std::string& name, const HostProfile& profile) {
  if (Descriptor socket = connect_to(channel_socket(name))) {
    Descriptor other(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    auto channel = std::make_unique<Channel>(std::move(socket), std::move(other), static_cast<double>(profile.answer_seconds));
    try {
      channel->greet();
      return channel;
    } catch (const ChannelLost&) {  // who keeps it has none now either, or ends
    }
  }
  return open_ssh(profile);
}

std::unique_ptr<Channel> Channel::open_ssh(const HostProfile& profile) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  std::vector<std::string> words = ssh_command(profile, agent_command(profile));
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = ::posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  in.read = Descriptor(), out.write = Descriptor(), err.write = Descriptor();  // held here too, the end of ssh would not be seen
  if (failed != 0) throw ChannelLost("cannot start " + words.front() + ": " + std::strerror(failed));
  auto channel = std::make_unique<Channel>(std::move(out.read), std::move(in.write), static_cast<double>(profile.answer_seconds));
  channel->process_ = process;
  channel->errors_ = std::move(err.read);
  let_not_wait(channel->errors_);
  channel->greet();
  return channel;
}

Channel::~Channel() {
  if (process_ < 0) return;
  out_ = Descriptor();  // the agent ends with it
  ::kill(process_, SIGTERM);
  for (const double end = now() + 2; now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (::waitpid(process_, nullptr, WNOHANG) != 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Channel::greet() {
  agent_ = ask({{"ask", "hello"}, {"protocol", kAgentProtocol}}).head;
  if (!agent_.value("protocol", Json()).is_number_integer() || !agent_.value("version", Json()).is_string()) lose("no agent answers");
}

std::string Channel::read_only() const {
  if (agent_.value("protocol", int64_t{0}) >= kAgentProtocol) return {};
  return "the saccade there (" + agent_.value("version", "") +
         ") is older than this one and is only read from; saccade host copy brings it up";
}

void Channel::send(Json head, std::string body, std::function<void(Frame)> then) {
  const int64_t id = next_id_++;
  head["id"] = id;
  waiting_[id] = std::move(then);
  unwritten_ += frame_bytes({std::move(head), std::move(body)});
  write();
}

Frame Channel::ask(Json head, std::string body, double seconds) {
  if (changes_something(head) && !read_only().empty()) throw UsageError(read_only());
  Frame whole;
  bool done = false;
  const double patience = seconds > 0 ? seconds : patience_;
  double heard = now();
  send(std::move(head), std::move(body), [&](Frame frame) {
    heard = now();
    done = !frame.head.value("part", false);
    whole.body += frame.body;
    if (done) whole.head = std::move(frame.head);
    if (whole.body.size() > kMostAnswer) lose("an answer is too long");
  });
  const int64_t id = next_id_ - 1;
  try {
    while (!done) {
      wait(200);
      if (!done && now() - heard > patience) lose("no answer for " + std::to_string(static_cast<int>(patience)) + " s");
    }
  } catch (...) {
    waiting_.erase(id);
    throw;
  }
  if (whole.head.contains("error")) {
    const Json &error = whole.head["error"], code = whole.head.value("code", Json(1));
    throw RemoteError(error.is_string() ? error.get<std::string>() : "the agent failed", whole_number<int>(code).value_or(1));
  }
  return whole;
}

void Channel::attend(int descriptor, std::function<void()> then) { attended_ = descriptor, attend_ = std::move(then); }

void Channel::write() {
  while (!unwritten_.empty()) {
    const ssize_t count = ::send(out_.get(), unwritten_.data(), unwritten_.size(), MSG_NOSIGNAL);
    const ssize_t written = count >= 0 || errno != ENOTSOCK ? count : ::write(out_.get(), unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) lose(std::strerror(errno));
    written_ += written;
    unwritten_.erase(0, static_cast<size_t>(written));
  }
}

void Channel::read() {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(in_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) lose("the connection has ended");
  read_ += got;
  reader_.take({buffer.data(), static_cast<size_t>(got)});
  try {
    while (std::optional<Frame> frame = reader_.next()) {
      const auto id = whole_number<int64_t>(frame->head.value("id", Json()));
      const auto asked = id ? waiting_.find(*id) : waiting_.end();
      if (asked == waiting_.end()) continue;
      const auto then = asked->second;
      if (!frame->head.value("part", false)) waiting_.erase(asked);
      then(std::move(*frame));
    }
  } catch (const DataError& error) {
    lose(error.what());
  } catch (const Json::exception&) {
    lose("the agent answers something that cannot be read");
  }
}

void Channel::wait(int milliseconds) {
  std::array<pollfd, 4> files{
      {{in_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {unwritten_.empty() ? -1 : out_.get(), POLLOUT, 0}, {attended_, POLLIN, 0}}};
  if (::poll(files.data(), files.size(), milliseconds) <= 0) return;
  if (files[1].revents != 0) {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got > 0 && words_.size() < kMostWords) words_.append(buffer.data(), static_cast<size_t>(got));
    if (got == 0) errors_ = Descriptor();
  }
  if (files[2].revents != 0) write();
  if (files[0].revents != 0) read();
  if (files[3].revents != 0 && attend_) attend_();
}

void Channel::lose(const std::string& why) {
  std::array<char, 4096> buffer{};
  for (pollfd file{errors_.get(), POLLIN, 0}; errors_ && ::poll(&file, 1, 200) > 0;) {  // what ssh says comes with its end
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    words_.append(buffer.data(), static_cast<size_t>(got));
  }
  const std::string words = last_line(words_);
  throw ChannelLost(words.empty() ? why : words);
}

}  // namespace saccade

#include "analysis/runs/hdf5_helper.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "analysis/runs/hdf5.h"
#include "kernels/engine/error.h"

extern char** environ;

namespace saccade::h5 {
namespace {

constexpr const char* kProgram = "saccade-hdf5-helper";  ///< as the first word of its command line; NAME of the file is the second
constexpr const char* kBegun = "begun";                  ///< said before it opens the file: what ends it earlier is not the file's fault
constexpr int kSocket = 0, kFile = 3;                    ///< descriptors of the helper
constexpr uint64_t kMostTexts = 1 << 20, kMostBytes = uint64_t{1} << 28;

using Message = std::vector<std::string>;

bool send_bytes(int socket, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent, size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* bytes, size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, size -= static_cast<size_t>(got);
  }
  return true;
}

/// The number of texts, and each behind its length.
bool send_message(int socket, const Message& message) {
  std::string bytes;
  const auto add = [&](uint64_t number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(message.size());
  for (const std::string& text : message) add(text.size()), bytes += text;
  return send_bytes(socket, bytes.data(), bytes.size());
}

/// False at the end, and for what is larger than any message.
bool receive_message(int socket, Message& message) {
  uint64_t count = 0, left = kMostBytes, size = 0;
  message.clear();
  if (!receive_all(socket, &count, sizeof count) || count > kMostTexts) return false;
  while (message.size() < count) {
    if (!receive_all(socket, &size, sizeof size) || size > left) return false;
    left -= size;
    if (!receive_all(socket, message.emplace_back(size, '\0').data(), size)) return false;
  }
  return true;
}

// ---- in the helper

/// Of this process now, in bytes: what the limit counts.
int64_t data_in_use() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoll(line.substr(7)) * 1024;
  throw Error("/proc/self/status has no VmData");
}

/// Or less, where the user is allowed less. The hard limit is above, for of time it kills, and killed is what others are too.
void limit(decltype(RLIMIT_CPU) what, int64_t most) {
  rlimit value{};
  ::getrlimit(what, &value);
  value.rlim_cur = std::min(value.rlim_max, static_cast<rlim_t>(most));
  value.rlim_max = std::min(value.rlim_max, static_cast<rlim_t>(most + 1));
  if (::setrlimit(what, &value) != 0) throw Error(std::string("cannot limit the helper for HDF5: ") + std::strerror(errno));
}

void limit_everything(int64_t file_size) {
  limit(RLIMIT_CPU, Helper::kSeconds + file_size / Helper::kBytesPerSecond);
  limit(RLIMIT_DATA, data_in_use() + Helper::kMemory + Budget(file_size).left);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 16);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/// "/run/series/" from the root.
Group group_at(const Group& root, const std::string& path) {
  const std::string inner = path.size() > 2 ? path.substr(1, path.size() - 2) : "";
  return root.open(inner.empty() ? "." : inner);
}

/// Numbers of a data set as this machine keeps them: 'f' or 'i' or 'u' and their size.
template <class T>
void send_numbers(int socket, const Group& group, const std::string& name) {
  const std::vector<T> values = group.read<T>(name);
  send_message(socket, {"ok"});
  send_bytes(socket, values.data(), values.size() * sizeof(T));
}
void send_numbers(int socket, const Group& group, const std::string& name, const std::string& type) {
  if (type == "f4") return send_numbers<float>(socket, group, name);
  if (type == "f8") return send_numbers<double>(socket, group, name);
  if (type == "i4") return send_numbers<int32_t>(socket, group, name);
  if (type == "i8") return send_numbers<int64_t>(socket, group, name);
  if (type == "u8") return send_numbers<uint64_t>(socket, group, name);
  if (type == "u1") return send_numbers<uint8_t>(socket, group, name);
  throw Error("no type " + type);
}

/// Of the data set in words 2 and 3 the part in words 4 and on: an offset and a count for every dimension.
void send_part(int socket, const Group& group, const Message& request) {
  Dims offsets, counts;
  for (size_t i = 4; i + 1 < request.size(); i += 2)
    offsets.push_back(std::stoll(request[i])), counts.push_back(std::stoll(request[i + 1]));
  if (request.at(3) != "f4") throw Error("no parts of type " + request.at(3));
  const std::vector<float> values = group.read_part<float>(request.at(2), offsets, counts);
  send_message(socket, {"ok"});
  send_bytes(socket, values.data(), values.size() * sizeof(float));
}

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

Message answer(const Group& group, const Message& request) {
  const std::string &what = request.at(0), &name = request.at(2);
  Message texts{"ok"};
  if (what == "open") {
    group.open(name);
  } else if (what == "contains" || what == "is_group" || what == "is_double") {
    const bool yes = what == "contains" ? group.contains(name) : what == "is_group" ? group.is_group(name) : group.is_double(name);
    texts.push_back(yes ? "1" : "0");
  } else if (what == "names" || what == "read_texts") {
    for (std::string& text : what == "names" ? group.names() : group.read_texts(name)) texts.push_back(std::move(text));
  } else if (what == "dims") {
    for (const int64_t d : group.dims(name)) texts.push_back(std::to_string(d));
  } else if (what == "text_attribute") {
    texts.push_back(group.text_attribute(name, request.at(3)));
  } else if (what == "real_attribute") {
    texts.push_back(bytes_of(group.real_attribute(name)));
  } else if (what == "integer_attribute") {
    texts.push_back(bytes_of(group.integer_attribute(name)));
  } else {
    throw Error("no request " + what);
  }
  return texts;
}

int serve(const std::string& name) try {
  struct stat state {};
  if (::fstat(kFile, &state) != 0) return 1;
  limit_everything(state.st_size);
  if (!send_message(kSocket, {kBegun})) return 1;
  const Reader file(Descriptor(kFile), name);
  if (!send_message(kSocket, {"ok"})) return 1;
  for (Message request; receive_message(kSocket, request);) {
    Message reply;
    try {
      const Group group = group_at(file.root(), request.at(1));
      if (request.at(0) == "read")
        send_numbers(kSocket, group, request.at(2), request.at(3));
      else if (request.at(0) == "read_part")
        send_part(kSocket, group, request);
      else
        reply = answer(group, request);
    } catch (const std::bad_alloc&) {
      reply = {"error", name + ": it takes more memory than a file of its size is read with"};
    } catch (const Error& error) {
      reply = {"error", error.what()};
    }
    if (!reply.empty() && !send_message(kSocket, reply)) return 1;
  }
  return 0;
} catch (const std::exception& error) {
  return send_message(kSocket, {"error", error.what()}) ? 0 : 1;
}

/// The helper is this program, whichever it is, so that none has to be looked for and both are of one version. It never comes to main().
__attribute__((constructor)) void serve_instead_of_main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[0]) == kProgram) ::_exit(serve(argv[1]));
}

// ---- here

/// Above those that the helper gets.
Descriptor high(int file) { return Descriptor(::fcntl(file, F_DUPFD_CLOEXEC, 16)); }

/// Of signals that are meant for who started it, such as those to all processes of a terminal, a service or a job: with him it ends. They
/// are blocked from its birth on, since loading the program takes a while.
posix_spawnattr_t deaf_to_others() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &signals);
  return attributes;
}

pid_t start(const Descriptor& file, const Descriptor& socket, std::string name) {
  const Descriptor its_file = high(file.get()), its_socket = high(socket.get());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, its_socket.get(), kSocket);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, its_file.get(), kFile);
  std::string program = kProgram;
  std::array<char*, 3> arguments{program.data(), name.data(), nullptr};
  pid_t process = -1;
  posix_spawnattr_t attributes = deaf_to_others();
  const int failed = ::posix_spawn(&process, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw Error(name + ": no process can be started to read it: " + std::strerror(failed));
  return process;
}

/// Until it has begun it has not looked at the file: a library that it is linked to may have been replaced, for one.
[[noreturn]] void tell_no_begin(const std::string& name, pid_t process, const Message& said) {
  if (!said.empty()) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  const std::string how = !said.empty()         ? "said “" + said.back() + "”"
                          : WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                                : "ended with status " + std::to_string(WEXITSTATUS(status));
  throw Error("the process that is to read " + name + ", this program started again, " + how +
              " before it began. Were the program or its libraries replaced? Then start it anew");
}

}  // namespace

Helper::Helper(const Descriptor& file, std::string name) : name_(std::move(name)) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw Error(name_ + ": no process can be started to read it: " + std::strerror(errno));
  socket_ = Descriptor(pair[0]);
  {
    const Descriptor other(pair[1]);
    process_ = start(file, other, name_);
  }  // kept open here, it would hide that the helper has ended, and receive() would wait for ever
  try {
    Message first;
    if (!receive_message(socket_.get(), first) || first != Message{kBegun}) tell_no_begin(name_, std::exchange(process_, -1), first);
    receive();
  } catch (...) {
    end();
    throw;
  }
}

Helper::~Helper() { end(); }

/// Returns how it ended, as waitpid tells.
int Helper::wait() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
  return status;
}

void Helper::end() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);  // it holds nothing
  wait();
}

void Helper::tell_end() {
  if (process_ <= 0) throw DataError(name_ + ": the process that read it has ended");
  socket_ = Descriptor();  // where its answer makes no sense it may still run
  const int status = wait();
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGKILL) throw Error("the process that read " + name_ + " was killed, perhaps for lack of memory");
  if (signal == SIGXCPU) throw DataError(name_ + " is damaged, or made to: reading it takes more time than its size allows");
  throw DataError(name_ + " is damaged, or made to: the process that read it ended" +
                  (signal ? " by signal " + std::to_string(signal) : std::string()));
}

std::vector<std::string> Helper::receive() {
  Message message;
  if (!receive_message(socket_.get(), message) || message.empty()) tell_end();
  if (message[0] == "error") throw DataError(message.size() > 1 ? message[1] : name_ + " cannot be read");
  message.erase(message.begin());
  return message;
}

std::vector<std::string> Helper::ask(const std::vector<std::string>& request) {
  if (process_ <= 0 || !send_message(socket_.get(), request)) tell_end();
  return receive();
}

void Helper::ask(const std::vector<std::string>& request, void* values, size_t bytes) {
  ask(request);
  if (!receive_all(socket_.get(), values, bytes)) tell_end();
}

}  // namespace saccade::h5

// A library for LD_PRELOAD that makes local folders look like a network file system: locks that are not there, sizes that lag, pages that
// read as zeros, files that the server has forgotten, and a machine that slept.
//
//   NET_UNDER=DIR        the folder that is on the network; without it nothing happens
//   NET_LOCKS=NUMBER     what flock and locks by fcntl answer: ENOSYS, ENOLCK, EOPNOTSUPP, ENOTSUPP (524)
//   NET_LAG=MS           for so long a file has the size, and its last page the bytes, that this process was told first
//   NET_ZEROS=1          with NET_LAG: the page in which the file ended before goes on with zeros for as long
//   NET_STALE=N          every N-th look at an open file (fstat, read) answers ESTALE, until it is opened again
//   NET_HOST=NAME        this machine calls itself so: a reader on another one
//   NET_CLOCK=FILE       the machine has slept for the seconds that stand there: CLOCK_BOOTTIME is ahead by them
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

constexpr int64_t kPage = 4096;

struct Settings {
  std::string under = text_of("NET_UNDER"), clock = text_of("NET_CLOCK");
  int locks = std::atoi(text_of("NET_LOCKS").c_str());
  int64_t lag = std::atoll(text_of("NET_LAG").c_str()) * 1'000'000, stale = std::atoll(text_of("NET_STALE").c_str());
  bool zeros = text_of("NET_ZEROS") == "1";
};
/// Never destroyed, nor is what follows: a process calls to its very end, a sanitizer behind that of all statics.
const Settings& settings() {
  static const Settings& the_settings = *new Settings;
  return the_settings;
}

bool on_the_network(int file) {
  if (settings().under.empty()) return false;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  const std::string& under = settings().under;
  return length > static_cast<ssize_t>(under.size()) && under.compare(0, under.size(), path, under.size()) == 0;
}

int64_t monotonic() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// What this process has been told of a file.
struct Told {
  int64_t size = 0, before = 0;  ///< its size now and at the question before: from there to the end of the page there may be zeros
  int64_t at = -1;
};
std::mutex mutex;
auto& all_told = *new std::map<std::pair<dev_t, ino_t>, Told>;
auto& forgotten = *new std::set<int>;
std::atomic<int64_t> looks{0};

/// Asks anew when the answer is old. `true_size`: of the file now.
Told told_of(const struct stat& state) {
  const std::lock_guard lock(mutex);
  Told& told = all_told[{state.st_dev, state.st_ino}];
  const int64_t now = monotonic();
  if (told.at < 0 || now - told.at >= settings().lag || state.st_size < told.size) {
    const bool first = told.at < 0 || state.st_size < told.size;
    told.before = first ? state.st_size : told.size;
    told.size = state.st_size;
    told.at = now;
  }
  return told;
}

/// Whether the server knows the open file no more; errno is set then.
bool is_stale(int file) {
  if (settings().stale == 0 || !on_the_network(file)) return false;
  const std::lock_guard lock(mutex);
  if (++looks % settings().stale == 0) forgotten.insert(file);
  if (!forgotten.contains(file)) return false;
  errno = ESTALE;
  return true;
}

bool has_lag(int file) { return settings().lag > 0 && on_the_network(file); }

bool true_state(int file, struct stat& state) { return ::syscall(SYS_fstat, file, &state) == 0 && S_ISREG(state.st_mode); }

ssize_t read_at(int file, void* data, size_t size, int64_t offset) {
  struct stat state {};
  const auto read = [&](size_t n) { return static_cast<ssize_t>(::syscall(SYS_pread64, file, data, n, offset)); };
  if (is_stale(file)) return -1;
  if (!has_lag(file) || !true_state(file, state)) return read(size);
  const Told told = told_of(state);
  if (offset >= told.size) return 0;
  const ssize_t got = read(std::min<size_t>(size, static_cast<size_t>(told.size - offset)));
  const int64_t page_end = (told.before + kPage - 1) / kPage * kPage;
  if (settings().zeros)
    for (int64_t at = std::max(offset, told.before); at < std::min(offset + got, page_end); ++at) static_cast<char*>(data)[at - offset] = 0;
  return got;
}

int locks_answer(int file, bool* none) {
  *none = settings().locks != 0 && on_the_network(file);
  if (*none) errno = settings().locks;
  return -1;
}

}  // namespace

extern "C" {

int flock(int file, int operation) {
  bool none = false;
  if (locks_answer(file, &none); none) return -1;
  return static_cast<int>(::syscall(SYS_flock, file, operation));
}

int fcntl(int file, int command, ...) {
  static auto* const the_real = real<int(int, int, ...)>("fcntl");
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const bool is_lock = command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
                       command == F_OFD_SETLKW || command == F_OFD_GETLK;
  bool none = false;
  if (is_lock) locks_answer(file, &none);
  return none ? -1 : the_real(file, command, argument);
}
int fcntl64(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return fcntl(file, command, argument);
}

int fstat(int file, struct stat* state) {
  if (is_stale(file)) return -1;
  const int result = static_cast<int>(::syscall(SYS_fstat, file, state));
  if (result == 0 && S_ISREG(state->st_mode) && has_lag(file)) state->st_size = told_of(*state).size;
  return result;
}
int fstat64(int file, struct stat64* state) { return fstat(file, reinterpret_cast<struct stat*>(state)); }

ssize_t pread(int file, void* data, size_t size, off_t offset) { return read_at(file, data, size, offset); }
ssize_t pread64(int file, void* data, size_t size, off64_t offset) { return read_at(file, data, size, offset); }
ssize_t __pread_chk(int file, void* data, size_t size, off_t offset, size_t) { return read_at(file, data, size, offset); }
ssize_t __pread64_chk(int file, void* data, size_t size, off64_t offset, size_t) { return read_at(file, data, size, offset); }
ssize_t read(int file, void* data, size_t size) {
  if (is_stale(file)) return -1;
  return static_cast<ssize_t>(::syscall(SYS_read, file, data, size));
}
ssize_t __read_chk(int file, void* data, size_t size, size_t) { return read(file, data, size); }

int close(int file) {
  if (settings().stale != 0) {
    const std::lock_guard lock(mutex);
    forgotten.erase(file);
  }
  return static_cast<int>(::syscall(SYS_close, file));
}

int gethostname(char* name, size_t size) {
  static auto* const the_real = real<int(char*, size_t)>("gethostname");
  const std::string host = text_of("NET_HOST");
  if (host.empty() || host.size() >= size) return the_real(name, size);
  std::memcpy(name, host.c_str(), host.size() + 1);
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock != CLOCK_BOOTTIME || settings().clock.empty() || result != 0) return result;
  const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, settings().clock.c_str(), O_RDONLY | O_CLOEXEC, 0));
  char text[32] = {};
  if (file < 0) return result;
  if (::syscall(SYS_read, file, text, sizeof text - 1) > 0) time->tv_sec += std::atoll(text);
  ::syscall(SYS_close, file);
  return result;
}

}  // extern "C"

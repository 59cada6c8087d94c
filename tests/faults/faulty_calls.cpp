// A library for LD_PRELOAD that stands before the file calls of a program: it counts those that concern given folders, ends the process at
// the n-th, lets the n-th fail, or records what was written so that a power cut can be played (power_cuts.py).
//
//   FAULT_UNDER=DIR[:DIR]    folders whose files count; without it nothing happens
//   FAULT_PROCESS=TEXT       only in processes whose command line holds TEXT
//   FAULT_CALLS=LETTERS      which calls count: o open to write, O open to read, w write, R read, s sync, r rename, t truncate, u unlink,
//                            m make a folder, c close (all but reading, without it)
//   FAULT_AT=N               the call that fails, from 1; 0: none
//   FAULT_LASTS=1            and all behind it
//   FAULT_KIND=KIND          kill, short (half of a write, then ENOSPC), or the number of an error
//   FAULT_COUNT=FILE         gets a line from every process: the number of calls, or "killed"
//   FAULT_RECORD=FILE        what was done, in the form of `Entry`
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
/// The function of the C library that one of ours stands before.
#define REAL(name) static auto* const the_real = real<decltype(::name)>(#name)

using Write = ssize_t(int, const void*, size_t);
using Open = int(const char*, int, ...);
using Readlink = ssize_t(const char*, char*, size_t);

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

std::string target_of(const std::string& link) {
  char target[4096];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : "";
}

std::string path_of(int descriptor) { return target_of("/proc/self/fd/" + std::to_string(descriptor)); }

/// Absolute; what a name in /proc/self/fd leads to.
std::string path_at(int folder, const char* name) {
  if (!name) return {};
  if (std::strncmp(name, "/proc/self/fd/", 14) == 0) return target_of(name);
  if (name[0] == '/') return name;
  const std::string base = folder == AT_FDCWD ? target_of("/proc/self/cwd") : path_of(folder);
  return std::string_view(name) == "." ? base : base + "/" + name;
}

bool command_line_holds(const std::string& text) {
  static auto* const open_file = real<Open>("open");
  const int file = open_file("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  char line[8192];
  const ssize_t length = file < 0 ? -1 : real<ssize_t(int, void*, size_t)>("read")(file, line, sizeof line);
  if (file >= 0) real<int(int)>("close")(file);
  std::string words(line, static_cast<size_t>(length < 0 ? 0 : length));
  for (char& c : words)
    if (c == '\0') c = ' ';
  return words.find(text) != std::string::npos;
}

struct Plan {
  std::vector<std::string> folders;
  std::string calls = "owsrtumc", kind = text_of("FAULT_KIND");
  long at = std::atol(text_of("FAULT_AT").c_str());
  bool lasts = text_of("FAULT_LASTS") == "1";
  int record = -1;
  std::atomic<long> count{0};

  Plan() {
    std::string under = text_of("FAULT_UNDER");
    for (size_t begin = 0; begin < under.size();) {
      const size_t end = std::min(under.find(':', begin), under.size());
      if (end > begin) folders.push_back(under.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!text_of("FAULT_CALLS").empty()) calls = text_of("FAULT_CALLS");
    if (const std::string process = text_of("FAULT_PROCESS"); !process.empty() && !command_line_holds(process)) folders.clear();
    if (const std::string file = text_of("FAULT_RECORD"); !file.empty() && !folders.empty())
      record = real<Open>("open")(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  bool concerns(const std::string& path) const {
    for (const std::string& folder : folders)
      if (path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/')) return true;
    return false;
  }
};

/// Never destroyed: a process calls to its very end, a sanitizer behind that of all statics.
Plan& plan() {
  static Plan& the_plan = *new Plan;
  return the_plan;
}

void note_process(const std::string& what) {
  const std::string file = text_of("FAULT_COUNT"), line = what + "\n";
  if (file.empty() || plan().folders.empty()) return;
  const int out = real<Open>("open")(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out < 0 || real<Write>("write")(out, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

enum class Strike { none, fails, is_short };

/// Counts a call; errno is set where it fails.
Strike strike(char call, const std::string& path) {
  Plan& p = plan();
  if (!p.concerns(path) || p.calls.find(call) == std::string::npos) return Strike::none;
  const long n = ++p.count;
  if (p.at == 0 || n < p.at || (n > p.at && !p.lasts)) return Strike::none;
  if (p.kind == "kill") {
    note_process("killed");
    ::kill(::getpid(), SIGKILL);
  }
  const bool is_short = p.kind == "short";
  if (is_short && n == p.at && call == 'w') return Strike::is_short;
  errno = is_short ? ENOSPC : std::atoi(p.kind.c_str());
  return Strike::fails;
}

/// Before texts and data, in this order: path, other, data.
struct Entry {
  uint32_t kind;  ///< C created, T opened and emptied, W written, L length set, S synced, M renamed, U removed, D folder made, A ended
  uint32_t path_length, other_length, data_length;
  uint64_t offset;
};

void record(char kind, const std::string& path, const std::string& other = {}, uint64_t offset = 0, std::string_view data = {}) {
  if (plan().record < 0) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Entry entry{static_cast<uint32_t>(kind), static_cast<uint32_t>(path.size()), static_cast<uint32_t>(other.size()),
                    static_cast<uint32_t>(data.size()), offset};
  std::string bytes(reinterpret_cast<const char*>(&entry), sizeof entry);
  bytes.append(path).append(other).append(data);
  if (real<Write>("write")(plan().record, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
}

struct AtExit {
  ~AtExit() {
    record('A', {});
    note_process(std::to_string(plan().count));
  }
} at_exit;

bool exists(const std::string& path) {
  struct stat state {};
  return ::lstat(path.c_str(), &state) == 0;
}

template <class Call>
int open_with(int folder, const char* name, int flags, Call call) {
  const std::string path = path_at(folder, name);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
  if ((flags & O_PATH) == 0 && (flags & O_DIRECTORY) == 0 && strike(writes ? 'o' : 'O', path) != Strike::none) return -1;
  const bool concerns = writes && plan().record >= 0 && plan().concerns(path), existed = concerns && exists(path);
  const int file = call();
  if (file >= 0 && concerns) {
    if (!existed)
      record('C', path);
    else if ((flags & O_TRUNC) != 0)
      record('T', path);
  }
  return file;
}

mode_t mode_of(int flags, va_list list) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0; }

template <class Call>
ssize_t write_with(int file, size_t size, const void* data, int64_t offset, Call call) {
  if (plan().folders.empty()) return call(size);
  const std::string path = path_of(file);
  const Strike struck = strike('w', path);
  if (struck == Strike::fails) return -1;
  if (struck == Strike::is_short && size > 1) size /= 2;
  const bool concerns = plan().record >= 0 && plan().concerns(path);
  if (concerns && offset < 0) {
    struct stat state {};
    const bool at_end = (::fcntl(file, F_GETFL) & O_APPEND) != 0 && ::fstat(file, &state) == 0;
    offset = at_end ? state.st_size : ::lseek(file, 0, SEEK_CUR);
  }
  const ssize_t done = call(size);
  if (done > 0 && concerns)
    record('W', path, {}, static_cast<uint64_t>(offset), {static_cast<const char*>(data), static_cast<size_t>(done)});
  return done;
}

template <class Call>
ssize_t read_with(int file, Call call) {
  if (plan().calls.find('R') != std::string::npos && strike('R', path_of(file)) != Strike::none) return -1;
  return call();
}

template <class Call>
int change(char call_kind, char entry, const std::string& path, const std::string& other, Call call) {
  if (strike(call_kind, other.empty() ? path : other) != Strike::none) return -1;
  const int result = call();
  if (result == 0 && plan().concerns(path)) record(entry, path, other);
  return result;
}

template <class Call>
int sync_with(int file, Call call) {
  if (plan().folders.empty()) return call();
  const std::string path = path_of(file);
  if (strike('s', path) != Strike::none) return -1;
  if (!plan().concerns(path)) return call();
  record('S', path);
  return 0;  // none of these trials takes the power away
}

}  // namespace

extern "C" {

int open(const char* name, int flags, ...) {
  REAL(open);
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(AT_FDCWD, name, flags, [&] { return the_real(name, flags, mode); });
}
int open64(const char* name, int flags, ...) {
  REAL(open64);
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(AT_FDCWD, name, flags, [&] { return the_real(name, flags, mode); });
}
int openat(int folder, const char* name, int flags, ...) {
  REAL(openat);
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(folder, name, flags, [&] { return the_real(folder, name, flags, mode); });
}
int openat64(int folder, const char* name, int flags, ...) {
  REAL(openat64);
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(folder, name, flags, [&] { return the_real(folder, name, flags, mode); });
}
int __open_2(const char* name, int flags) { return open(name, flags); }
int __open64_2(const char* name, int flags) { return open64(name, flags); }
int __openat_2(int folder, const char* name, int flags) { return openat(folder, name, flags); }
int __openat64_2(int folder, const char* name, int flags) { return openat64(folder, name, flags); }

int flags_of(const char* mode) {
  const int access = std::strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  return access | (mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0);
}
FILE* fopen(const char* name, const char* mode) {
  REAL(fopen);
  FILE* file = nullptr;
  const int opened = open_with(AT_FDCWD, name, flags_of(mode), [&] { return (file = the_real(name, mode)) ? 0 : -1; });
  return opened < 0 ? nullptr : file;
}
FILE* fopen64(const char* name, const char* mode) {
  REAL(fopen64);
  FILE* file = nullptr;
  const int opened = open_with(AT_FDCWD, name, flags_of(mode), [&] { return (file = the_real(name, mode)) ? 0 : -1; });
  return opened < 0 ? nullptr : file;
}

ssize_t write(int file, const void* data, size_t size) {
  REAL(write);
  return write_with(file, size, data, -1, [&](size_t n) { return the_real(file, data, n); });
}
ssize_t writev(int file, const iovec* parts, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write(file, all.data(), all.size());
}
ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  REAL(pwrite);
  return write_with(file, size, data, offset, [&](size_t n) { return the_real(file, data, n, offset); });
}
ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
  REAL(pwrite64);
  return write_with(file, size, data, offset, [&](size_t n) { return the_real(file, data, n, offset); });
}
ssize_t read(int file, void* data, size_t size) {
  REAL(read);
  return read_with(file, [&] { return the_real(file, data, size); });
}
ssize_t __read_chk(int file, void* data, size_t size, size_t) { return read(file, data, size); }
ssize_t pread(int file, void* data, size_t size, off_t offset) {
  REAL(pread);
  return read_with(file, [&] { return the_real(file, data, size, offset); });
}
ssize_t pread64(int file, void* data, size_t size, off64_t offset) {
  REAL(pread64);
  return read_with(file, [&] { return the_real(file, data, size, offset); });
}
ssize_t __pread_chk(int file, void* data, size_t size, off_t offset, size_t) { return pread(file, data, size, offset); }
ssize_t __pread64_chk(int file, void* data, size_t size, off64_t offset, size_t) { return pread64(file, data, size, offset); }

int close(int file) {
  REAL(close);
  if (plan().folders.empty() || plan().calls.find('c') == std::string::npos) return the_real(file);
  const Strike struck = (::fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY ? Strike::none : strike('c', path_of(file));
  const int reason = errno, result = the_real(file);  // it is closed whatever is said of it
  if (struck == Strike::none) return result;
  errno = reason;
  return -1;
}
int fsync(int file) {
  REAL(fsync);
  return sync_with(file, [&] { return the_real(file); });
}
int fdatasync(int file) {
  REAL(fdatasync);
  return sync_with(file, [&] { return the_real(file); });
}

int ftruncate(int file, off_t size) {
  REAL(ftruncate);
  const std::string path = path_of(file);
  if (strike('t', path) != Strike::none) return -1;
  const int result = the_real(file, size);
  if (result == 0 && plan().concerns(path)) record('L', path, {}, static_cast<uint64_t>(size));
  return result;
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int rename(const char* from, const char* to) {
  REAL(rename);
  return change('r', 'M', path_at(AT_FDCWD, from), path_at(AT_FDCWD, to), [&] { return the_real(from, to); });
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  REAL(renameat);
  return change('r', 'M', path_at(from_folder, from), path_at(to_folder, to), [&] { return the_real(from_folder, from, to_folder, to); });
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  REAL(renameat2);
  return change('r', 'M', path_at(from_folder, from), path_at(to_folder, to),
                [&] { return the_real(from_folder, from, to_folder, to, flags); });
}
int unlink(const char* name) {
  REAL(unlink);
  return change('u', 'U', path_at(AT_FDCWD, name), {}, [&] { return the_real(name); });
}
int unlinkat(int folder, const char* name, int flags) {
  REAL(unlinkat);
  return change('u', 'U', path_at(folder, name), {}, [&] { return the_real(folder, name, flags); });
}
int rmdir(const char* name) {
  REAL(rmdir);
  return change('u', 'U', path_at(AT_FDCWD, name), {}, [&] { return the_real(name); });
}
int remove(const char* name) {
  REAL(remove);
  return change('u', 'U', path_at(AT_FDCWD, name), {}, [&] { return the_real(name); });
}
int mkdir(const char* name, mode_t mode) {
  REAL(mkdir);
  return change('m', 'D', path_at(AT_FDCWD, name), {}, [&] { return the_real(name, mode); });
}
int mkdirat(int folder, const char* name, mode_t mode) {
  REAL(mkdirat);
  return change('m', 'D', path_at(folder, name), {}, [&] { return the_real(folder, name, mode); });
}

}  // extern "C"

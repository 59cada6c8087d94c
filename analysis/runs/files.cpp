#include "analysis/runs/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <utility>

#include "analysis/runs/small_files.h"
#include "kernels/engine/error.h"
#include "models/corpus/file_mark.h"

namespace saccade {

namespace fs = std::filesystem;

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}
Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void throw_file_error(const std::string& action, const std::filesystem::path& path) {
  const int reason = errno;
  throw DataError("cannot " + action + " " + path.string() + ": " + std::strerror(reason));
}

namespace {

constexpr size_t kLargestText = size_t{256} << 20;
constexpr std::string_view kAside = ".tmp-";
constexpr int kReopened = 5;  // times, when the file server has forgotten what was opened
constexpr const char* kLink = " is a link, and below a run directory none is followed";

bool shared_runs() {
  const char* wish = std::getenv("SACCADE_SHARE_RUNS");
  return wish && std::string_view(wish) == "1";
}

bool is_link(int folder, const char* name) {
  struct stat there {};
  return ::fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode);
}

/// Of "a/run/" and "run", too.
fs::path folder_above(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute.parent_path() : absolute.parent_path().parent_path();
}

/// A new name survives a power cut, where the folder may be read, which syncing takes.
void sync_names_above(const fs::path& path) {
  const fs::path folder = folder_above(path);
  if (::access(folder.c_str(), R_OK) == 0) sync_directory(folder);
}

/// Whether a name still leads to the file that `descriptor` has open.
bool stands_at(int descriptor, int folder, const fs::path& name) {
  struct stat mine {
  }, there{};
  return ::fstat(descriptor, &mine) == 0 && ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/// The folder that a file stands in, opened, and its name there. The folders of a run directory are reached through no link.
struct Place {
  Descriptor folder;
  std::string name;

  explicit Place(const fs::path& path) : name(path.filename().string()) {
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const std::string kind = parent.filename().string();
    const fs::path run = parent.has_parent_path() ? parent.parent_path() : fs::path(".");
    std::error_code ignored;
    const bool inner = (kind == "checkpoints" || kind == "captures") && fs::exists(run / "run.json", ignored);
    constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
    if (!inner) {
      folder = Descriptor(::open(parent.c_str(), kFolder));
    } else if (const Descriptor base(::open(run.c_str(), kFolder)); base) {
      if (is_link(base.get(), kind.c_str())) throw DataError(parent.string() + kLink);
      folder = Descriptor(::openat(base.get(), kind.c_str(), kFolder | O_NOFOLLOW));
    }
    if (!folder) throw_file_error("open", path);
  }
};

/// Empty, with errno, when the file cannot be opened. One that the file server has forgotten is opened again, for its name may lead to
/// another one by now.
Descriptor open_in(const Descriptor& folder, const fs::path& path, int flags, mode_t mode) {
  const std::string name = path.filename().string();
  for (int tries = 0;; ++tries) {
    Descriptor file(::openat(folder.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
    int reason = errno;
    if (!file && is_link(folder.get(), name.c_str())) throw DataError(path.string() + kLink);
    struct stat state {};
    const bool known = file && ::fstat(file.get(), &state) == 0;
    if (file && !known) reason = errno;
    if (!known && reason == ESTALE && tries < kReopened) continue;
    errno = reason;
    if (file && !known) throw_file_error("read", path);
    if ((file && !S_ISREG(state.st_mode)) || (!file && reason == ENXIO)) throw DataError(path.string() + " is no regular file");
    errno = reason;
    return file;
  }
}

}  // namespace

mode_t run_file_mode() { return shared_runs() ? 0666 : 0600; }
mode_t run_folder_mode() { return shared_runs() ? 0777 : 0700; }

Descriptor open_run_file_if_there(const fs::path& path, int flags) { return open_in(Place(path).folder, path, flags, run_file_mode()); }

Descriptor open_run_file(const fs::path& path, int flags) {
  Descriptor file = open_run_file_if_there(path, flags);
  if (!file) throw_file_error("open", path);
  return file;
}

void make_run_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), run_folder_mode()) == 0) return sync_names_above(path);
  const int reason = errno;
  struct stat there {};
  if (reason == EEXIST && ::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode)) throw DataError(path.string() + kLink);
  errno = reason;
  if (reason != EEXIST || !S_ISDIR(there.st_mode)) throw_file_error("create", path);
}

void make_folders_above(const fs::path& path) {
  const fs::path folder = folder_above(path);
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  if (fs::exists(folder, error)) throw DataError("cannot create " + path.string() + ", for " + folder.string() + ": Not a directory");
  make_folders_above(folder);
  fs::create_directory(folder, error);
  if (error) throw DataError("cannot create " + folder.string() + ": " + error.message());
  sync_names_above(folder);
}

std::string remove_run_file(const fs::path& path) try {
  const Place place(path);
  if (::unlinkat(place.folder.get(), place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return "cannot remove " + path.string() + ": " + std::strerror(errno);
} catch (const DataError& error) {
  return error.what();
}

namespace {

/// False when the server has forgotten the file that was opened, for another one has its name by now.
bool read_whole(const fs::path& path, size_t most, std::string& text) {
  const Descriptor file = open_run_file(path, O_RDONLY);
  std::string block(size_t{1} << 16, '\0');
  text.clear();
  while (true) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESTALE) return false;
    if (got < 0) throw_file_error("read", path);
    if (got == 0) return true;
    if (text.size() + static_cast<size_t>(got) > most) throw DataError(path.string() + " is larger than any such file is written");
    text.append(block, 0, static_cast<size_t>(got));
  }
}

}  // namespace

std::string read_text(const fs::path& path) { return read_small_text(path, kLargestText); }

std::string read_small_text(const fs::path& path, size_t most) {
  std::string text;
  for (int tries = 0; !read_whole(path, most, text); ++tries)
    if (tries == kReopened) {
      errno = ESTALE;
      throw_file_error("read", path);
    }
  return text;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void sync_directory(const fs::path& directory) {
  const Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) throw_file_error("sync", directory);
}

bool is_aside(const std::string& file_name, const std::string& name) {
  const size_t mark = file_name.rfind(kAside);
  if (!file_name.starts_with('.') || mark == std::string::npos || mark < 2) return false;
  const std::string process = file_name.substr(mark + kAside.size());
  return !process.empty() && process.find_first_not_of("0123456789") == std::string::npos &&
         (name.empty() || file_name.substr(1, mark - 1) == name);
}

void remove_abandoned_files(const fs::path& folder, const std::string& name) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!is_aside(file, name)) continue;
    const Descriptor left(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const FileMark mark = left ? mark_file(left.get(), false) : FileMark::anothers;
    const bool abandoned = mark == FileMark::mine || (mark == FileMark::none && long_unchanged(left.get()));
    if (abandoned && stands_at(left.get(), AT_FDCWD, entry.path())) ::unlink(entry.path().c_str());
  }
}

namespace {

/// A new file beside the one it is to replace. Until `become` it goes with this object.
class FileAside {
 public:
  FileAside(const fs::path& path, mode_t mode) : path_(path), place_(path) {
    name_ = "." + place_.name + std::string(kAside) + std::to_string(::getpid());
    for (int tries = 0; !create(mode); ++tries)
      if (tries == 100) throw_file_error("create", path_);
  }
  ~FileAside() {
    if (!name_.empty()) ::unlinkat(place_.folder.get(), name_.c_str(), 0);
  }
  FileAside(const FileAside&) = delete;
  FileAside& operator=(const FileAside&) = delete;

  fs::path folder() const { return path_.has_parent_path() ? path_.parent_path() : fs::path("."); }
  fs::path aside() const { return folder() / name_; }
  int get() const { return file_.get(); }
  void become() {
    if (::fsync(file_.get()) != 0) throw_file_error("sync", path_);
    if (::renameat(place_.folder.get(), name_.c_str(), place_.folder.get(), place_.name.c_str()) != 0) throw_file_error("replace", path_);
    name_.clear();
    const Descriptor names(::openat(place_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!names || ::fsync(names.get()) != 0) throw_file_error("sync", folder());
  }
  enum class New { yes, there_is_one, no_links };
  /// As a second name of this file, which takes the name from no other as renaming would. no_links: the file system knows one name a file.
  New become_new() {
    if (::linkat(place_.folder.get(), name_.c_str(), place_.folder.get(), place_.name.c_str(), 0) == 0) return New::yes;
    const int reason = errno;
    if (stands_at(file_.get(), place_.folder.get(), place_.name)) return New::yes;  // the file server's answer was lost
    if (reason == EEXIST || reason == ESTALE) return New::there_is_one;
    if (reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS) return New::no_links;
    errno = reason;
    throw_file_error("create", path_);
  }
  const Descriptor& file() const { return file_; }
  Descriptor take() { return std::move(file_); }

 private:
  /// False when another process took the new file for an abandoned one and removed it.
  bool create(mode_t mode) {
    ::unlinkat(place_.folder.get(), name_.c_str(), 0);  // of an ended process that had our number
    file_ = open_in(place_.folder, aside(), O_RDWR | O_CREAT | O_EXCL, mode);
    if (!file_) throw_file_error("create", path_);
    return mark_file(file_.get(), true) != FileMark::anothers && stands_at(file_.get(), place_.folder.get(), name_);
  }

  fs::path path_;
  Place place_;
  std::string name_;
  Descriptor file_;
};

void replace(const fs::path& path, mode_t mode, const std::function<void(const FileAside&)>& write) {
  FileAside aside(path, mode);  // which knows that the folder is no link
  remove_abandoned_files(aside.folder(), path.filename().string());
  write(aside);
  aside.become();
}

}  // namespace

void replace_file(const fs::path& path, const std::function<void(const fs::path& aside)>& write, mode_t mode) {
  replace(path, mode, [&](const FileAside& file) { write(file.aside()); });
}

void replace_text(const fs::path& path, std::string_view text, mode_t mode) {
  replace(path, mode, [&](const FileAside& file) {
    if (!write_all(file.get(), text)) throw_file_error("write", path);
  });
}

namespace {

void write_new(const Descriptor& file, const fs::path& path, const std::function<std::string(uint64_t inode)>& text) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0 || !write_all(file.get(), text(state.st_ino)) || ::fsync(file.get()) != 0)
    throw_file_error("write", path);
}

/// Where a file system knows no second names: empty for an instant.
Descriptor create_in_place(const fs::path& path, const std::function<std::string(uint64_t inode)>& text) {
  Descriptor file = open_run_file_if_there(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file && errno != EEXIST && errno != ESTALE) throw_file_error("create", path);
  if (file) try {
      write_new(file, path, text);
    } catch (const DataError&) {
      remove_run_file(path);
      throw;
    }
  return file;
}

}  // namespace

Descriptor create_text(const fs::path& path, const std::function<std::string(uint64_t inode)>& text) {
  FileAside aside(path, run_file_mode());
  remove_abandoned_files(aside.folder(), path.filename().string());
  write_new(aside.file(), path, text);
  switch (aside.become_new()) {
    case FileAside::New::yes: return aside.take();
    case FileAside::New::there_is_one: return Descriptor();
    case FileAside::New::no_links: break;
  }
  return create_in_place(path, text);
}

void require_free_space(const std::filesystem::path& directory, int64_t bytes, const std::string& what) {
  struct statvfs state {};
  if (::statvfs(directory.c_str(), &state) != 0) throw_file_error("ask for the free space of", directory);
  const double free = static_cast<double>(state.f_bavail) * static_cast<double>(state.f_frsize);
  const double needed = 1.2 * static_cast<double>(bytes);
  if (free >= needed) return;
  std::ostringstream message;
  message << std::fixed << std::setprecision(1) << "no room for " << what << ": " << needed / 1e6 << " MB needed, " << free / 1e6
          << " MB free in " << directory.string();
  throw DataError(message.str());
}

}  // namespace saccade

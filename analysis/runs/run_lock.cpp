#include "analysis/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "analysis/runs/run_origin.h"

namespace saccade {
namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// False with errno. A folder is only open for reading, and so marked by a lock for reading.
bool take(const Descriptor& file, short type) {
  struct flock mark = whole_file(type);
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::fcntl(file.get(), F_OFD_SETLK, &mark) == 0;
}

bool is_taken(const Descriptor& file, short by) {
  struct flock mark = whole_file(by);
  return ::fcntl(file.get(), F_OFD_GETLK, &mark) == 0 && mark.l_type != F_UNLCK;
}

Descriptor open_directory(const std::filesystem::path& directory) {
  return Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

RunLock::RunLock(const std::filesystem::path& directory) : directory_(open_directory(directory)) {
  if (!directory_) throw_file_error("open", directory);
  if (const std::optional<RunOrigin> origin = read_run_origin(directory))
    throw DataError(directory.string() + " is a mirror of a run on " + origin->host + ", which is not written here");
  const auto path = directory / "lock";
  file_ = open_run_file(path, O_RDWR | O_CREAT);
  if (!take(directory_, F_RDLCK) || !take(file_, F_WRLCK)) {
    if (errno != EWOULDBLOCK && errno != EAGAIN && errno != EACCES) throw_file_error("lock", path);
    const auto holder = lock_holder(directory);
    const bool known = holder && holder->process > 0;
    throw RunInUse(directory.string() + " is in use by " +
                   (known ? "process " + std::to_string(holder->process) + " on " + holder->host : std::string("another process")));
  }
  if (::ftruncate(file_.get(), 0) != 0 || !write_all(file_.get(), std::to_string(::getpid()) + " " + host_name() + "\n"))
    throw_file_error("write", path);
}

std::optional<LockHolder> lock_holder(const std::filesystem::path& directory) {
  const Descriptor folder = open_directory(directory);
  if (!folder) return {};
  if (const std::optional<RunOrigin> origin = read_run_origin(directory)) return origin->live;
  LockHolder holder;
  if (const Descriptor file = open_run_file_if_there(directory / "lock", O_RDONLY); file && is_taken(file, F_RDLCK)) {
    std::array<char, 512> text{};
    const ssize_t size = ::pread(file.get(), text.data(), text.size() - 1, 0);
    if (size > 0) std::istringstream(std::string(text.data(), static_cast<size_t>(size))) >> holder.process >> holder.host;
    return holder;
  }
  return is_taken(folder, F_WRLCK) ? std::optional(holder) : std::nullopt;
}

}  // namespace saccade

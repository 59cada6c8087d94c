#include "analysis/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "analysis/runs/run_origin.h"
#include "models/corpus/file_mark.h"

namespace saccade {
namespace {

constexpr const char* kLock = "lock";
constexpr const char* kLease = "lease";

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

enum class Taken { yes, by_another, no_locks };

/// A folder is only open for reading, and so marked by a lock for reading. Throws DataError for what is no refusal.
Taken take(const Descriptor& file, short type, const std::filesystem::path& path) {
  struct flock mark = whole_file(type);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::fcntl(file.get(), F_OFD_SETLK, &mark) == 0) return Taken::yes;
  if (says_no_locks(errno) || errno == EBADF) return Taken::no_locks;  // EBADF: NFS, which locks nothing that is open for reading
  if (errno != EWOULDBLOCK && errno != EAGAIN && errno != EACCES) throw_file_error("lock", path);
  return Taken::by_another;
}

bool is_taken(const Descriptor& file, short by) {
  struct flock mark = whole_file(by);
  return ::fcntl(file.get(), F_OFD_GETLK, &mark) == 0 && mark.l_type != F_UNLCK;
}

Descriptor open_directory(const std::filesystem::path& directory) {
  return Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// "PROCESS HOST INODE"; the last, which earlier versions did not write, tells the file from a copy of it.
LockHolder named_in(const Descriptor& lock) {
  LockHolder holder;
  std::array<char, 512> text{};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size() - 1, 0);
  if (size <= 0) return holder;
  std::istringstream words(std::string(text.data(), static_cast<size_t>(size)));
  words >> holder.process >> holder.host;
  uint64_t inode = 0;
  if (struct stat state{}; words >> inode && ::fstat(lock.get(), &state) == 0) holder.elsewhere = inode != state.st_ino;
  return holder;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string describe(const LockHolder& holder) {
  return holder.process > 0 ? "process " + std::to_string(holder.process) + " on " + holder.host : std::string("another process");
}

RunLock::RunLock(const std::filesystem::path& directory, const LeaseWish& wish) : directory_(open_directory(directory)) {
  if (!directory_) throw_file_error("open", directory);
  if (const std::optional<RunOrigin> origin = read_run_origin(directory))
    throw DataError(directory.string() + " is a mirror of a run on " + origin->host + ", which is not written here");
  const auto path = directory / kLock;
  file_ = open_run_file(path, O_RDWR | O_CREAT);
  bool locked = true;
  for (const auto& [file, type] : {std::pair(&directory_, short{F_RDLCK}), std::pair(&file_, short{F_WRLCK})}) {
    const Taken taken = take(*file, type, path);
    if (taken == Taken::by_another)
      throw RunInUse(directory.string() + " is in use by " + describe(lock_holder(directory).value_or(LockHolder{})));
    if (taken == Taken::yes) continue;
    locked = false;
    note_ = "the file system of " + directory.string() + " has no locks (" + std::strerror(errno) + "); the lease " +
            (directory / kLease).string() + " keeps other processes out";
  }
  LeaseWish advised = wish;
  advised.advice = "saccade resume " + directory.string() + " --take-over goes on";
  lease_ = std::make_unique<Lease>(directory / kLease, file_, locked, advised);
  struct stat state {};
  const bool known = ::fstat(file_.get(), &state) == 0;
  if (!known || ::ftruncate(file_.get(), 0) != 0 ||
      !write_all(file_.get(), std::to_string(::getpid()) + " " + host_name() + " " + std::to_string(state.st_ino) + "\n"))
    throw_file_error("write", path);
}

std::optional<LockHolder> lock_holder(const std::filesystem::path& directory) {
  const Descriptor folder = open_directory(directory);
  if (!folder) return {};
  if (const std::optional<RunOrigin> origin = read_run_origin(directory)) return origin->live;
  if (const Descriptor file = open_run_file_if_there(directory / kLock, O_RDONLY); file && is_taken(file, F_RDLCK)) return named_in(file);
  if (is_taken(folder, F_WRLCK)) return LockHolder{};
  const auto lease = find_lease(directory / kLease);
  if (!lease || !seems_alive(*lease)) return {};
  if (!lease->holder) return LockHolder{};
  return LockHolder{lease->holder->process, lease->holder->host, !of_this_machine(*lease->holder)};
}

bool held_here(const std::filesystem::path& directory) {
  if (const auto lease = find_lease(directory / kLease); lease && lease->holder) return !lease->copied && of_this_machine(*lease->holder);
  const Descriptor file = open_run_file_if_there(directory / kLock, O_RDONLY);
  if (!file) return false;
  const LockHolder last = named_in(file);
  return last.host == host_name() && !last.elsewhere;
}

}  // namespace saccade

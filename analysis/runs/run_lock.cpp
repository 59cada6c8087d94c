#include "analysis/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

RunLock::RunLock(const std::filesystem::path& directory) {
  const auto path = directory / "lock";
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_) throw_file_error("open", path);
  struct flock mark = whole_file(F_WRLCK);
  const bool taken = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0 && ::fcntl(file_.get(), F_OFD_SETLK, &mark) == 0;
  if (!taken) {
    if (errno != EWOULDBLOCK && errno != EAGAIN && errno != EACCES) throw_file_error("lock", path);
    const auto holder = lock_holder(directory);
    throw DataError(directory.string() + " is in use by " +
                    (holder ? "process " + std::to_string(holder->process) + " on " + holder->host : std::string("another process")));
  }
  const std::string text = std::to_string(::getpid()) + " " + host_name() + "\n";
  if (::ftruncate(file_.get(), 0) != 0 || ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw_file_error("write", path);
}

std::optional<LockHolder> lock_holder(const std::filesystem::path& directory) {
  const Descriptor file(::open((directory / "lock").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  struct flock mark = whole_file(F_RDLCK);
  if (::fcntl(file.get(), F_OFD_GETLK, &mark) != 0 || mark.l_type == F_UNLCK) return {};
  std::array<char, 512> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size() - 1, 0);
  LockHolder holder;
  if (size > 0) std::istringstream(std::string(text.data(), static_cast<size_t>(size))) >> holder.process >> holder.host;
  return holder;
}

}  // namespace saccade

#include "analysis/studies/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace saccade {

FileLock::FileLock(const std::filesystem::path& file) : file_(open_run_file(file, O_RDWR | O_CREAT)) {
  while (::flock(file_.get(), LOCK_EX) != 0)
    if (errno != EINTR) throw_file_error("lock", file);
}

}  // namespace saccade

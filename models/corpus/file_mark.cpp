#include "models/corpus/file_mark.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace saccade {
namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP, which Linux keeps for itself but Lustre and NFS hand out
constexpr time_t kHour = 3600;

time_t newest_change_in(int folder) {
  time_t newest = 0;
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = again < 0 ? nullptr : ::fdopendir(again);
  if (!entries) return newest;
  while (const dirent* entry = ::readdir(entries)) {
    struct stat state {};
    if (::fstatat(folder, entry->d_name, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode))
      newest = std::max(newest, state.st_mtim.tv_sec);
  }
  ::closedir(entries);
  return newest;
}

}  // namespace

bool says_no_locks(int error) { return error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP || error == kNotSupported; }

FileMark mark_file(int descriptor, bool wait) {
  while (::flock(descriptor, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
    if (errno == EINTR && wait) continue;
    return says_no_locks(errno) ? FileMark::none : FileMark::anothers;
  }
  return FileMark::mine;
}

bool long_unchanged(int descriptor) {
  struct stat state {};
  if (::fstat(descriptor, &state) != 0) return false;
  time_t newest = state.st_mtim.tv_sec;
  if (S_ISDIR(state.st_mode)) newest = std::max(newest, newest_change_in(descriptor));
  return ::time(nullptr) - newest > kHour;
}

}  // namespace saccade

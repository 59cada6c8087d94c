#pragma once

namespace saccade {

/// A file that is written aside is marked by flock as long as its process lives, so that others can tell what was left behind.
enum class FileMark {
  mine,      ///< this process holds it now
  anothers,  ///< a process that lives holds it, or the call failed (errno)
  none       ///< the file system has no such locks
};

/// `wait`: until whoever holds it is done.
FileMark mark_file(int descriptor, bool wait);

/// Whether a call that locks failed with this error for the file system, or how it was mounted, knows no locks: NFS without its lock
/// daemon, Lustre without -o flock, DVS.
bool says_no_locks(int error);

/// Where there are no locks: whether nobody has changed an open file or folder, or a file right in it, for an hour.
bool long_unchanged(int descriptor);

}  // namespace saccade

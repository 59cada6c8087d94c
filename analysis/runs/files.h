#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace saccade {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// A pipe that programs started from here do not inherit. Throws Error where the system gives none.
struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe();

/// Throws DataError "cannot ACTION PATH: REASON" with the reason of errno.
[[noreturn]] void throw_file_error(const std::string& action, const std::filesystem::path& path);

/// Modes of new files and folders of a run: 0600 and 0700. With SACCADE_SHARE_RUNS=1 in the environment the umask alone decides.
mode_t run_file_mode();
mode_t run_folder_mode();

/// Opens RUN/NAME, RUN/checkpoints/NAME or RUN/captures/NAME. RUN itself may be reached by links; below it none is followed. Never
/// waits. Throws DataError, also for what is no regular file (a FIFO, a device, a link). New files get run_file_mode().
Descriptor open_run_file(const std::filesystem::path& path, int flags);

/// The same where a missing file is no error: the descriptor is then empty.
Descriptor open_run_file_if_there(const std::filesystem::path& path, int flags);

/// Creates a folder of a run, so that its name survives a power cut; one that stands there is accepted, a link is not. Throws DataError.
void make_run_folder(const std::filesystem::path& path);

/// Creates the folders that are missing above `path`, with the modes of the umask, and likewise to stay. Throws DataError.
void make_folders_above(const std::filesystem::path& path);

/// Removes a file of a run. Empty when it is gone, else why it is not.
std::string remove_run_file(const std::filesystem::path& path);

/// The whole content of a file of a run. Throws DataError.
std::string read_text(const std::filesystem::path& path);

/// Repeats short and interrupted writes; false with errno on failure.
bool write_all(int fd, std::string_view bytes);

/// Makes names and sizes in a directory survive a power cut.
void sync_directory(const std::filesystem::path& directory);

/// Puts a new file in the place of `path` in one instant: `write` fills a file aside (and checks it), which is then synced
/// and renamed, the directory synced too. On any error the file aside is removed and the old one stays. The file aside,
/// ".NAME.tmp-PID", is locked while this process lives; those that ended processes left are removed first (where there are no locks: those
/// that nobody changed for an hour). Throws DataError.
void replace_file(const std::filesystem::path& path, const std::function<void(const std::filesystem::path& aside)>& write,
                  mode_t mode = run_file_mode());
void replace_text(const std::filesystem::path& path, std::string_view text, mode_t mode = run_file_mode());

/// Puts a new file at `path` in one instant, with the text for its number, but only where there is none, as the one of several processes
/// that is first. Open for reading and writing; empty where there is a file. On file systems without hard links it is made in its place and
/// has no text at first. Throws DataError.
Descriptor create_text(const std::filesystem::path& path, const std::function<std::string(uint64_t inode)>& text);

/// Whether a file's name is that of a file aside of replace_file (for NAME, when one is given).
bool is_aside(const std::string& file_name, const std::string& name = {});

/// Removes the files aside in a folder (of NAME alone, when one is given) that nobody has locked: their processes have ended.
void remove_abandoned_files(const std::filesystem::path& folder, const std::string& name = {});

/// Throws DataError when fewer than `bytes` · 1.2 are free where `directory` lies.
void require_free_space(const std::filesystem::path& directory, int64_t bytes, const std::string& what);

}  // namespace saccade

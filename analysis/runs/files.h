#pragma once
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

/// Throws DataError "cannot ACTION PATH: REASON" with the reason of errno.
[[noreturn]] void throw_file_error(const std::string& action, const std::filesystem::path& path);

/// The whole content. Throws DataError.
std::string read_text(const std::filesystem::path& path);

/// Makes names and sizes in a directory survive a power cut.
void sync_directory(const std::filesystem::path& directory);

/// Puts a new file in the place of `path` in one instant: `write` fills a file aside (and checks it), which is then synced
/// and renamed, the directory synced too. On any error the file aside is removed and the old one stays. Throws DataError.
void replace_file(const std::filesystem::path& path, const std::function<void(const std::filesystem::path& aside)>& write);
void replace_text(const std::filesystem::path& path, std::string_view text);

/// Throws DataError when fewer than `bytes` · 1.2 are free where `directory` lies.
void require_free_space(const std::filesystem::path& directory, int64_t bytes, const std::string& what);

}  // namespace saccade

#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace saccade {

/// Files written so that a crash, a full disk or a second process never leaves half of one under its final name:
/// write aside, sync, rename, sync the folder. Every failure is a DataError that names the file and the system's reason.

class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  /// Locks it for as long as it is open; false when another process took it for an abandoned one and removed it.
  bool lock() const;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  /// Overwrites what was written at `offset` (a header whose numbers are known last).
  void write_at(int64_t offset, std::string_view bytes);
  void sync();   ///< flushes and syncs; a file not synced is incomplete
  void close();  ///< syncs and closes

 private:
  void flush();
  std::filesystem::path path_;
  std::string buffer_;
  int descriptor_;
};

/// Removes the files and folders aside ("NAME.aside-PID-N") in a folder whose processes are gone: nobody holds their lock.
void remove_abandoned(const std::filesystem::path& folder);

/// Becomes `target` by commit(); until then, or if that never comes, there is no such file. What earlier processes left behind
/// when they were killed is removed.
class StagedFile {
 public:
  explicit StagedFile(std::filesystem::path target);
  ~StagedFile();
  OutputFile& file() { return *file_; }
  void commit();

 private:
  std::filesystem::path target_, aside_;
  std::unique_ptr<OutputFile> file_;
};

/// What becomes of a folder that already stands where one is to go.
enum class Existing { refuse, replace, keep };

/// The same for a folder. What earlier processes left behind when they were killed is removed.
class StagedFolder {
 public:
  explicit StagedFolder(std::filesystem::path target);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return aside_; }
  /// refuse: a folder at the target is an error. replace: it makes way, at once where the file system can. keep: it stays,
  /// as one that another process has made meanwhile, and this one goes.
  void commit(Existing existing);

 private:
  bool take_lock();

  std::filesystem::path target_, aside_;
  int lock_ = -1;
};

/// A whole file in memory, read-only, backed by the file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

void make_folder(const std::filesystem::path& path);
/// The whole content. Throws DataError also for what is no regular file (a pipe would be waited for, a device never end), and for a file of
/// more than `most` bytes.
std::string read_file(const std::filesystem::path& path, size_t most = size_t{256} << 20);
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace saccade

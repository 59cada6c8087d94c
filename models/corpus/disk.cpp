#include "models/corpus/disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "kernels/engine/error.h"
#include "models/corpus/file_mark.h"
#include "models/corpus/lost_maps.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBuffer = 1 << 15;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw DataError(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "open");
  const int result = ::fsync(descriptor);
  ::close(descriptor);
  if (result != 0 && errno != EINVAL) fail(folder, "sync");  // EINVAL: the file system knows no folder sync
}

std::string suffix() {
  static std::atomic<int> count{0};
  return ".aside-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// At once where the file system can.
void exchange(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail(b, "exchange");
  const fs::path between = a.string() + "-between";
  if (::rename(b.c_str(), between.c_str()) != 0) fail(b, "move aside");
  if (::rename(a.c_str(), b.c_str()) != 0) fail(b, "rename to");
  if (::rename(between.c_str(), a.c_str()) != 0) fail(a, "rename to");
}

/// Whether `path` still leads to the folder that `descriptor` has open, and not to a newer one or to nothing.
bool stands_at(int descriptor, const fs::path& path) {
  struct stat mine {
  }, there{};
  return ::fstat(descriptor, &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/// "NAME.aside-PID-N"
bool is_aside(const std::string& name) {
  const size_t mark = name.rfind(".aside-");
  if (mark == std::string::npos || mark == 0) return false;
  const std::string numbers = name.substr(mark + 7);
  return !numbers.empty() && numbers.find_first_not_of("0123456789-") == std::string::npos;
}

}  // namespace

/// A lock on a folder that another process has removed meanwhile says nothing of the one that now bears its name.
void remove_abandoned(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!is_aside(entry.path().filename().string())) continue;
    const int lock = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0) continue;
    const FileMark mark = mark_file(lock, false);
    const bool abandoned = mark == FileMark::mine || (mark == FileMark::none && long_unchanged(lock));
    if (abandoned && stands_at(lock, entry.path())) {
      std::error_code ignored;  // another process may be removing it too
      fs::remove_all(entry.path(), ignored);
    }
    ::close(lock);
  }
}

OutputFile::OutputFile(fs::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail(path_, "create");
}

bool OutputFile::lock() const { return mark_file(descriptor_, true) != FileMark::anothers && stands_at(descriptor_, path_); }

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBuffer) flush();
}

void OutputFile::write_at(int64_t offset, std::string_view bytes) {
  flush();
  if (::pwrite(descriptor_, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size())) fail(path_, "write");
}

void OutputFile::flush() {
  for (std::string_view rest = buffer_; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "write");
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void OutputFile::sync() {
  flush();
  if (::fsync(descriptor_) != 0) fail(path_, "sync");
}

void OutputFile::close() {
  sync();
  const int result = ::close(descriptor_);
  descriptor_ = -1;
  if (result != 0) fail(path_, "close");
}

StagedFile::StagedFile(fs::path target) : target_(std::move(target)), aside_(target_.string() + suffix()) {
  make_folder(target_.parent_path());
  remove_abandoned(target_.parent_path());
  for (int tries = 0; !file_; ++tries) {
    file_ = std::make_unique<OutputFile>(aside_);
    if (file_->lock()) return;
    file_.reset();
    if (tries == 100) fail(aside_, "lock");
  }
}

StagedFile::~StagedFile() {
  file_.reset();
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void StagedFile::commit() {
  file_->sync();  // closed when it has its name: until then the lock says that it is wanted
  if (::rename(aside_.c_str(), target_.c_str()) != 0) fail(target_, "rename to");
  aside_.clear();
  sync_folder(target_.parent_path());
}

StagedFolder::StagedFolder(fs::path target)
    : target_(std::move(target)), aside_(target_.parent_path() / (std::string(".").append(target_.filename().string()).append(suffix()))) {
  make_folder(target_.parent_path());
  remove_abandoned(target_.parent_path());
  for (int tries = 0; !take_lock(); ++tries)
    if (tries == 100) fail(aside_, "lock");
}

/// False when another process took the new folder for an abandoned one and removed it.
bool StagedFolder::take_lock() {
  make_folder(aside_);
  lock_ = ::open(aside_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool marked = lock_ >= 0 && mark_file(lock_, true) != FileMark::anothers;  // waits for one who is removing it
  if (marked && stands_at(lock_, aside_)) return true;
  const int reason = errno;
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1, errno = reason;
  return false;
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!aside_.empty()) fs::remove_all(aside_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void StagedFolder::commit(Existing existing) {
  sync_folder(aside_);
  if (existing == Existing::replace && fs::exists(target_)) {
    exchange(aside_, target_);  // what stood there is then aside, and goes with the destructor
  } else if (::rename(aside_.c_str(), target_.c_str()) == 0) {
    aside_.clear();
  } else if (existing != Existing::keep || (errno != ENOTEMPTY && errno != EEXIST)) {
    fail(target_, "rename to");
  }
  sync_folder(target_.parent_path());
}

MappedFile::MappedFile(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "open");
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(path, "read");
  }
  size_ = static_cast<size_t>(status.st_size);
  void* memory = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) fail(path, "map");
  data_ = static_cast<const char*>(memory);
  if (data_) watch_map(data_, size_, path);
}

MappedFile::~MappedFile() {
  if (!data_) return;
  forget_map(data_);
  ::munmap(const_cast<char*>(data_), size_);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  const fs::path above = fs::absolute(path).lexically_normal().parent_path();
  make_folder(above);
  fs::create_directory(path, error);
  if (error) throw DataError(path.string() + ": cannot create the folder: " + error.message());
  if (::access(above.c_str(), R_OK) == 0) sync_folder(above);  // which syncing takes
}

std::string read_file(const fs::path& path, size_t most) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "open");
  const std::unique_ptr<const int, void (*)(const int*)> closing(&descriptor, [](const int* open) { ::close(*open); });
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(path, "read");
  if (!S_ISREG(status.st_mode)) throw DataError(path.string() + " is no regular file");
  std::string text, block(kBuffer, '\0');
  for (ssize_t got; (got = ::read(descriptor, block.data(), block.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read");
    if (text.size() + static_cast<size_t>(got) > most)
      throw DataError(path.string() + " has more than " + std::to_string(most >> 20) + " MiB");
    text.append(block, 0, static_cast<size_t>(got));
  }
  return text;
}

void write_file(const fs::path& path, std::string_view content) {
  StagedFile staged(path);
  staged.file().write(content);
  staged.commit();
}

}  // namespace saccade

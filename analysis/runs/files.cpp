#include "analysis/runs/files.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <utility>

#include "kernels/engine/error.h"

namespace saccade {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void throw_file_error(const std::string& action, const std::filesystem::path& path) {
  const int reason = errno;
  throw DataError("cannot " + action + " " + path.string() + ": " + std::strerror(reason));
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_file_error("open", path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad() || text.bad()) throw_file_error("read", path);
  return std::move(text).str();
}

namespace {

void sync_path(const std::filesystem::path& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) throw_file_error("sync", path);
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) throw_file_error("create", path);
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", path);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void sync_directory(const std::filesystem::path& directory) { sync_path(directory, O_RDONLY | O_DIRECTORY); }

void replace_file(const std::filesystem::path& path, const std::function<void(const std::filesystem::path& aside)>& write) {
  const auto aside = path.parent_path() / ("." + path.filename().string() + ".tmp-" + std::to_string(::getpid()));
  try {
    write(aside);
    sync_path(aside, O_RDONLY);
    if (::rename(aside.c_str(), path.c_str()) != 0) throw_file_error("replace", path);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  sync_directory(path.parent_path());
}

void replace_text(const std::filesystem::path& path, std::string_view text) {
  replace_file(path, [&](const std::filesystem::path& aside) { write_text(aside, text); });
}

void require_free_space(const std::filesystem::path& directory, int64_t bytes, const std::string& what) {
  struct statvfs state {};
  if (::statvfs(directory.c_str(), &state) != 0) throw_file_error("ask for the free space of", directory);
  const double free = static_cast<double>(state.f_bavail) * static_cast<double>(state.f_frsize);
  const double needed = 1.2 * static_cast<double>(bytes);
  if (free >= needed) return;
  std::ostringstream message;
  message << std::fixed << std::setprecision(1) << "no room for " << what << ": " << needed / 1e6 << " MB needed, " << free / 1e6
          << " MB free in " << directory.string();
  throw DataError(message.str());
}

}  // namespace saccade

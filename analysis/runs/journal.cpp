#include "analysis/runs/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "analysis/runs/crc32c.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr int kRecordsBetweenSyncs = 10;
constexpr auto kTimeBetweenSyncs = std::chrono::seconds(1);
constexpr std::string_view kSealKey = ",\"crc32c\":\"";
constexpr size_t kSealSize = kSealKey.size() + 8 + 2;

std::string seal(std::string_view body) {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", crc32c(body));
  return std::string(kSealKey) + digits.data() + "\"}";
}

/// The line without its newline when it checks and carries the number; else null.
Record parse_line(std::string_view line, int64_t number) {
  if (line.size() <= kSealSize || line.substr(line.size() - kSealSize) != seal(line.substr(0, line.size() - kSealSize))) return nullptr;
  Record record = Record::parse(line, nullptr, false);
  if (!record.is_object() || record.value("n", int64_t{-1}) != number) return nullptr;
  return record;
}

}  // namespace

std::string journal_line(int64_t number, const Record& record) {
  Record numbered{{"n", number}};
  numbered.update(record);
  std::string line = numbered.dump(-1, ' ', false, Record::error_handler_t::replace);
  line.pop_back();
  return line + seal(line) + "\n";
}

bool JournalReader::take_line(std::string_view line, const std::function<void(const Record&)>& visit) {
  try {
    const Record record = parse_line(line, next_number_);
    if (record.is_null()) return false;
    visit(record);
  } catch (const Record::exception&) {  // a sealed record of another form: another version's
    return false;
  }
  ++next_number_;
  return true;
}

bool JournalReader::poll(const std::function<void(const Record&)>& visit) {
  if (damaged_ || shrunk_) return false;
  const Descriptor file = open_run_file(path_, O_RDONLY);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw_file_error("read", path_);
  if (state.st_size < offset_) return shrunk_ = true;
  const int64_t before = offset_;
  std::string pending;
  std::string block(size_t{1} << 16, '\0');
  for (int64_t position = offset_; !damaged_;) {
    const ssize_t got = ::pread(file.get(), block.data(), block.size(), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error("read", path_);
    if (got == 0) break;
    position += got;
    pending.append(block, 0, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (!take_line(std::string_view(pending).substr(begin, end - begin), visit)) {
        damaged_ = true;
        break;
      }
      offset_ += static_cast<int64_t>(end - begin) + 1;
    }
    pending.erase(0, begin);
  }
  return offset_ != before || damaged_;
}

namespace {

int64_t file_size_of(const Descriptor& file, const std::filesystem::path& path) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw_file_error("read", path);
  return state.st_size;
}

}  // namespace

JournalWriter::JournalWriter(const std::filesystem::path& path, const std::function<void(const std::string&)>& report)
    : path_(path), file_(open_run_file(path, O_RDWR | O_CREAT | O_APPEND)) {
  JournalReader reader(path);
  reader.poll([](const Record&) {});
  size_ = reader.valid_bytes();
  next_number_ = reader.next_number();
  const int64_t dropped = file_size_of(file_, path) - size_;
  if (dropped > 0) {
    std::string message = path.string() + ": " + std::to_string(dropped) + " bytes behind record " + std::to_string(next_number_ - 1);
    if (reader.damaged()) {
      const auto kept = path.string() + ".damaged-" + std::to_string(size_);
      replace_text(kept, std::string_view(read_text(path)).substr(static_cast<size_t>(size_)));
      message += " are damaged and were moved to " + kept;
    } else {
      message += " are an unfinished line and were cut off";
    }
    if (::ftruncate(file_.get(), size_) != 0) throw_file_error("truncate", path);
    report(message);
  }
  sync();
  sync_directory(path.parent_path());
}

void JournalWriter::give_up(const std::string& action) {
  broken_ = true;
  throw_file_error(action, path_);
}

void JournalWriter::append(const Record& record) {
  if (broken_) throw DataError(path_.string() + ": nothing more is written after a failed write");
  const std::string line = journal_line(next_number_, record);
  ssize_t written = 0;
  do written = ::write(file_.get(), line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size())) {
    const int reason = written < 0 ? errno : ENOSPC;
    broken_ = true;
    if (::ftruncate(file_.get(), size_) != 0) throw_file_error("truncate", path_);
    errno = reason;
    give_up("write");
  }
  size_ += written;
  ++next_number_;
  ++unsynced_;
  if (unsynced_ >= kRecordsBetweenSyncs || std::chrono::steady_clock::now() - last_sync_ >= kTimeBetweenSyncs) sync();
}

void JournalWriter::sync() {
  if (broken_) return;
  if (::fdatasync(file_.get()) != 0) give_up("sync");  // never tried again: the kernel may have dropped the pages
  unsynced_ = 0;
  last_sync_ = std::chrono::steady_clock::now();
}

}  // namespace saccade

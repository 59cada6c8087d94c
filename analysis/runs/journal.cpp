#include "analysis/runs/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "analysis/runs/crc32c.h"
#include "analysis/runs/step_line.h"
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

/// Whether the line, without its newline, ends in the CRC of what stands before.
bool checks(std::string_view line) {
  if (line.size() <= kSealSize) return false;
  const std::string_view end = line.substr(line.size() - kSealSize), digits = end.substr(kSealKey.size(), 8);
  uint32_t crc = 0;
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), crc, 16);
  const bool lower = std::none_of(digits.begin(), digits.end(), [](char c) { return c >= 'A' && c <= 'F'; });
  return error == std::errc() && last == digits.data() + digits.size() && lower && end.starts_with(kSealKey) && end.ends_with("\"}") &&
         crc == crc32c(line.substr(0, line.size() - kSealSize));
}

}  // namespace

std::string journal_line(int64_t number, const Record& record) {
  Record numbered{{"n", number}};
  numbered.update(record);
  std::string line = numbered.dump(-1, ' ', false, Record::error_handler_t::replace);
  line.pop_back();
  return line + seal(line) + "\n";
}

bool JournalReader::take_line(std::string_view line, const std::function<void(const Record&)>& visit,
                              const std::function<void(const StepRecord&)>& visit_step) {
  try {
    if (!checks(line)) return false;
    const std::optional<StepRecord> step =
        visit_step ? read_step_line(line.substr(0, line.size() - kSealSize), next_number_) : std::optional<StepRecord>();
    if (step) {
      visit_step(*step);
    } else {
      const Record record = Record::parse(line, nullptr, false);
      if (!record.is_object() || record.value("n", int64_t{-1}) != next_number_) return false;
      visit(record);
    }
  } catch (const Record::exception&) {  // a sealed record of another form: another version's
    return false;
  }
  ++next_number_;
  return true;
}

bool JournalReader::poll(const std::function<void(const Record&)>& visit) { return poll(visit, {}); }

bool JournalReader::poll(const std::function<void(const Record&)>& visit, const std::function<void(const StepRecord&)>& visit_step) {
  if (damaged_ || shrunk_) return false;
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_file_error("open", path_);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw_file_error("read", path_);
  if (state.st_size < offset_) return shrunk_ = true;
  const int64_t before = offset_;
  std::string pending;
  std::string block(size_t{1} << 18, '\0');
  for (int64_t position = offset_; !damaged_;) {
    const ssize_t got = ::pread(file.get(), block.data(), block.size(), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error("read", path_);
    if (got == 0) break;
    position += got;
    pending.append(block, 0, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (!take_line(std::string_view(pending).substr(begin, end - begin), visit, visit_step)) {
        damaged_ = true;
        break;
      }
      offset_ += static_cast<int64_t>(end - begin) + 1;
    }
    pending.erase(0, begin);
  }
  return offset_ != before || damaged_;
}

bool JournalReader::skip_to_end(int64_t bytes) {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_file_error("open", path_);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw_file_error("read", path_);
  const int64_t start = std::max<int64_t>(0, state.st_size - bytes);
  std::string text(static_cast<size_t>(state.st_size - start), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), start);
  if (got < 0) throw_file_error("read", path_);
  text.resize(static_cast<size_t>(got));
  size_t begin = start == 0 ? 0 : text.find('\n') + 1;
  for (size_t end; begin < text.size() && (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    int64_t number = -1;
    if (!line.starts_with("{\"n\":") || !checks(line)) continue;
    std::from_chars(line.data() + 5, line.data() + line.size(), number);
    if (number < 0) continue;
    offset_ = start + static_cast<int64_t>(begin);
    next_number_ = number;
    return true;
  }
  return false;
}

namespace {

int64_t file_size_of(const Descriptor& file, const std::filesystem::path& path) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) throw_file_error("read", path);
  return state.st_size;
}

}  // namespace

JournalWriter::JournalWriter(const std::filesystem::path& path, const std::function<void(const std::string&)>& report)
    : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_) throw_file_error("open", path);
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

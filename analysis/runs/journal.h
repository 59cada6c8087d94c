#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "analysis/runs/files.h"
#include "analysis/runs/record_json.h"

namespace saccade {

/// The journal of a run: one JSON object a line, its first key "n" the sequence number from 0, its last key "crc32c" the
/// CRC-32C (eight hexadecimal digits) of the line up to the comma before that key. A reader takes the longest valid prefix.
///
///     {"n":7,"type":"step","step":7,"tokens":57344,…,"crc32c":"1c291ca3"}
std::string journal_line(int64_t number, const Record& record);

/// Follows a journal: each poll delivers the records that came since.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path path) : path_(std::move(path)) {}
  /// Goes on at a place where another reader stood: valid_bytes() and next_number().
  JournalReader(std::filesystem::path path, int64_t offset, int64_t number)
      : path_(std::move(path)), offset_(offset), next_number_(number) {}

  /// True when there was anything new. A line still being written waits for the next poll. Throws DataError when the file
  /// cannot be read; nothing is delivered behind a damaged line.
  bool poll(const std::function<void(const Record&)>& visit);
  /// The same, with the records of steps apart, which are nearly all.
  bool poll(const std::function<void(const Record&)>& visit, const std::function<void(const StepRecord&)>& visit_step);
  /// Begins in the middle: at the first whole record that checks among the last `bytes`. False when there is none.
  bool skip_to_end(int64_t bytes);

  int64_t valid_bytes() const { return offset_; }
  int64_t next_number() const { return next_number_; }
  /// A whole line did not check: what stands behind `valid_bytes` is not used.
  bool damaged() const { return damaged_; }
  /// The file became shorter than what was read: start over.
  bool shrunk() const { return shrunk_; }

 private:
  bool take_line(std::string_view line, const std::function<void(const Record&)>& visit,
                 const std::function<void(const StepRecord&)>& visit_step);

  std::filesystem::path path_;
  int64_t offset_ = 0, next_number_ = 0;
  bool damaged_ = false, shrunk_ = false;
};

/// Appends to a journal, one write a record; synced every 10 records or second, and on request.
class JournalWriter {
 public:
  /// Continues behind the longest valid prefix. What stands behind it is cut off; when that is more than one torn line it is
  /// first copied to a file beside, whose name goes to `report` with the number of bytes. Throws DataError.
  JournalWriter(const std::filesystem::path& path, const std::function<void(const std::string&)>& report);

  /// Throws DataError when the record could not be written whole; the journal then ends where it ended before, and nothing
  /// more is written to it by this object.
  void append(const Record& record);
  void sync();

 private:
  [[noreturn]] void give_up(const std::string& action);

  std::filesystem::path path_;
  Descriptor file_;
  int64_t size_ = 0, next_number_ = 0;
  int unsynced_ = 0;
  bool broken_ = false;
  std::chrono::steady_clock::time_point last_sync_ = std::chrono::steady_clock::now();
};

}  // namespace saccade

#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/runs/file_thread.h"
#include "analysis/runs/files.h"
#include "analysis/runs/journal_patience.h"
#include "analysis/runs/record_json.h"

namespace saccade {

/// The journal of a run: one JSON object a line, its first key "n" the sequence number from 0, its last key "crc32c" the
/// CRC-32C (eight hexadecimal digits) of the line up to the comma before that key. A reader takes every line that checks and has a
/// greater number than the one before; numbers that are missing are a hole. Damaged lines stay where they are, and who goes on behind
/// them leaves their numbers out, so that a hole is there to be seen for ever. A line that checks and has a number that was there before
/// is what a process was writing while it lost the run to another one, and is passed over.
///
///     {"n":7,"type":"step","step":7,"tokens":57344,…,"crc32c":"1c291ca3"}
std::string journal_line(int64_t number, const Record& record);

/// Records that cannot be read, damaged or gone.
struct JournalHole {
  int64_t first = 0, count = 0;  ///< number of the first, and how many; 0 where a damaged line took nobody's number
  int64_t after_step = 0;        ///< of the last good record before
  int64_t before_step = -1;      ///< of the first good record behind; −1: none has come yet
  bool steps_only = false;       ///< all are of steps behind after_step: of that one nothing is lost
};
/// "3 records behind step 4 and before step 9 are damaged or missing"
std::string describe(const JournalHole& hole);

/// Follows a journal: each poll delivers the records that came since. The file is opened by its name every time; one that was put in its
/// place and begins with the same bytes is the same journal.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path path) : path_(std::move(path)) {}
  /// Goes on at a place where another reader stood: line_bytes() and next_number().
  JournalReader(std::filesystem::path path, int64_t offset, int64_t number)
      : path_(std::move(path)), begin_(offset), offset_(offset), next_number_(number) {}

  /// For so many seconds a bad line near the end, or a file that is shorter than it was, is taken for what another machine has written and
  /// this one cannot see whole yet (JournalPatience): what stands behind is not read. 0, as it begins: no waiting. A poll may be
  /// asked for another time at every call.
  void wait_for_late_bytes(double seconds) { patience_.set(seconds); }

  /// Whether it waits so. As of the last poll.
  bool waits() const { return patience_.waits(); }

  /// True when there was anything new. A line still being written waits for the next poll. Throws DataError when the file
  /// cannot be read.
  bool poll(const std::function<void(const Record&)>& visit);
  /// The same, with the records of steps apart, which are nearly all.
  bool poll(const std::function<void(const Record&)>& visit, const std::function<void(const StepRecord&)>& visit_step);
  /// Begins in the middle: at the first whole record that checks among the last `bytes`. False when there is none.
  bool skip_to_end(int64_t bytes);

  int64_t line_bytes() const { return offset_; }  ///< of the whole lines read, good and bad
  /// The number of the next record; damaged lines that nothing good follows count as one each.
  int64_t next_number() const { return next_number_ + bad_lines_; }
  /// In the order of the file; without those whose records were all recorded again, for a later resume went back before them.
  std::vector<JournalHole> holes() const;
  int64_t step() const { return step_; }                         ///< of the last good record
  int64_t largest_step() const { return largest_step_; }         ///< of all, also those that a resume took back
  const std::string& last_state() const { return last_state_; }  ///< that a state record names; empty before the first
  /// The file became shorter than what was read, or another one that begins with other bytes was put in its place: start over.
  bool shrunk() const { return shrunk_; }

 private:
  bool take_line(std::string_view line, const std::function<void(const Record&)>& visit,
                 const std::function<void(const StepRecord&)>& visit_step);
  void close_hole(int64_t number, int64_t step, bool is_step);
  void took(int64_t number, int64_t step);
  enum class Look { done, stale };  ///< stale: the server has forgotten the file that was opened (ESTALE)
  Look read_on(const std::function<void(const Record&)>& visit, const std::function<void(const StepRecord&)>& visit_step);
  bool may_go_on(const Descriptor& file, int64_t size);
  bool has_same_beginning(const Descriptor& file, int64_t size) const;
  void consume(std::string_view bytes);

  static constexpr size_t kHead = 4096;
  std::filesystem::path path_;
  JournalPatience patience_;
  int64_t begin_ = 0;        ///< where reading began
  std::string head_;         ///< the first bytes from there, at most kHead
  uint32_t prefix_crc_ = 0;  ///< of all bytes from there to offset_
  uint64_t inode_ = 0;       ///< of the file that was read last
  int64_t offset_ = 0, next_number_ = 0, bad_lines_ = 0, step_ = 0, largest_step_ = 0;
  std::string last_state_;
  std::vector<JournalHole> holes_;
  bool shrunk_ = false;
};

/// Appends to a journal, one write a record; synced every 10 records or second, and on request.
class JournalWriter {
 public:
  /// Continues behind the last whole line; an unfinished one is cut off. `known`: records that were in the journal once, as run.json
  /// says; the numbers of those that are not there are left out. `report` hears of what was cut off and of every hole. Throws DataError.
  JournalWriter(const std::filesystem::path& path, const std::function<void(const std::string&)>& report, int64_t known = 0);

  /// Holes that were there when it was opened, as JournalReader tells them; the last may be open.
  const std::vector<JournalHole>& holes() const { return holes_; }
  int64_t largest_step() const { return largest_step_; }  ///< of the records that were there then
  int64_t next_number() const { return next_number_; }    ///< how many records there are, with those that are lost
  /// Leaves numbers out: so many records at least are lost.
  void skip(int64_t records) { next_number_ += records; }

  /// Throws DataError when the record could not be written whole; the journal then ends where it ended before, and nothing
  /// more is written to it by this object.
  /// Every ten records or second it is synced, by a thread, unless that is still at it; an error of that is thrown by the next call.
  void append(const Record& record);
  /// Until all records are on the disk.
  void sync();

 private:
  void sync_aside();
  [[noreturn]] void give_up(const std::string& action);
  void end_last_line(bool known, const std::function<void(const std::string&)>& report);

  std::filesystem::path path_;
  Descriptor file_;
  std::vector<JournalHole> holes_;
  int64_t size_ = 0, next_number_ = 0, largest_step_ = 0;
  int unsynced_ = 0;
  bool broken_ = false;
  std::chrono::steady_clock::time_point last_sync_ = std::chrono::steady_clock::now();
  std::unique_ptr<FileThread> syncing_;  ///< ends before the file is closed
};

}  // namespace saccade

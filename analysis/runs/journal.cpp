#include "analysis/runs/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>

#include "analysis/runs/sealed_json.h"
#include "analysis/runs/step_line.h"
#include "kernels/engine/error.h"
#include "models/corpus/crc32c.h"

namespace saccade {
namespace {

constexpr int kRecordsBetweenSyncs = 10;
constexpr auto kTimeBetweenSyncs = std::chrono::seconds(1);
constexpr size_t kLongestLine = size_t{64} << 20;
constexpr int64_t kBlock = int64_t{1} << 18;
constexpr int kReopened = 5;  // times, when the server has forgotten the file

}  // namespace

std::string journal_line(int64_t number, const Record& record) {
  Record numbered{{"n", number}};
  numbered.update(record);
  std::string line = numbered.dump(-1, ' ', false, Record::error_handler_t::replace);
  line.pop_back();
  return sealed(std::move(line)) + "\n";
}

std::string describe(const JournalHole& hole) {
  const std::string what = hole.count == 0 ? "a line" : hole.count == 1 ? "1 record" : std::to_string(hole.count) + " records";
  return what + " behind step " + std::to_string(hole.after_step) +
         (hole.before_step < 0 ? "" : " and before step " + std::to_string(hole.before_step)) + (hole.count > 1 ? " are" : " is") +
         (hole.count == 0 ? " damaged" : " damaged or missing");
}

/// The first good record behind it has this number and step; `is_step`: it is the step's own. Every step has one of its own, so when no
/// more are lost than steps between, all lost are those.
void JournalReader::close_hole(int64_t number, int64_t step, bool is_step) {
  const int64_t count = number - next_number_;
  if (count > 0 || bad_lines_ > 0) holes_.push_back({next_number_, count, step_, step, count == step - step_ - (is_step ? 1 : 0)});
  bad_lines_ = 0;
}

void JournalReader::took(int64_t number, int64_t step) {
  next_number_ = number + 1;
  step_ = step;
  largest_step_ = std::max(largest_step_, step);
}

bool JournalReader::take_line(std::string_view line, const std::function<void(const Record&)>& visit,
                              const std::function<void(const StepRecord&)>& visit_step) {
  if (!seal_holds(line)) return false;
  const std::optional<StepRecord> plain_step =
      visit_step ? read_step_line(line.substr(0, line.size() - kSealSize), next_number_) : std::optional<StepRecord>();
  if (plain_step) {
    close_hole(next_number_, plain_step->step, true);
    visit_step(*plain_step);
    took(next_number_, plain_step->step);
    return true;
  }
  try {
    const Record record = Record::parse(line, nullptr, false);
    if (!record.is_object()) return false;
    const int64_t number = record.value("n", int64_t{-1}), step = record.value("step", step_);
    const std::string type = record.value("type", ""), state = record.value("state", "");
    if (number < next_number_) return number >= 0 && type != "resume";  // without that one it is not known from where on steps are repeated
    const int64_t repeats = type == "resume" ? record.value("repeats", std::numeric_limits<int64_t>::max()) : 0;
    visit(record);
    close_hole(number, step, type == "step");
    if (type == "resume")
      std::erase_if(holes_, [&](const JournalHole& h) { return h.first >= repeats || step < h.after_step + (h.steps_only ? 1 : 0); });
    if (type == "state") last_state_ = state;
    took(number, step);
  } catch (const Record::exception&) {  // a sealed record of another form: another version's
    return false;
  }
  return true;
}

std::vector<JournalHole> JournalReader::holes() const {
  std::vector<JournalHole> holes = holes_;
  if (bad_lines_ > 0) holes.push_back({next_number_, bad_lines_, step_, -1, false});
  return holes;
}

bool JournalReader::poll(const std::function<void(const Record&)>& visit) { return poll(visit, {}); }

bool JournalReader::poll(const std::function<void(const Record&)>& visit, const std::function<void(const StepRecord&)>& visit_step) {
  if (shrunk_) return false;
  const int64_t before = offset_;
  for (int tries = 0; !shrunk_ && read_on(visit, visit_step) == Look::stale; ++tries)
    if (tries == kReopened) {
      errno = ESTALE;
      throw_file_error("read", path_);
    }
  return shrunk_ || offset_ != before;
}

/// Of a file of `size` bytes, as far as it goes.
bool JournalReader::has_same_beginning(const Descriptor& file, int64_t size) const {
  const int64_t end = std::min(offset_, size);
  std::string block(kBlock, '\0');
  uint32_t crc = 0;
  for (int64_t position = begin_; position < end;) {
    const ssize_t got = ::pread(file.get(), block.data(), static_cast<size_t>(std::min<int64_t>(kBlock, end - position)), position);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;  // it ends here now; an error shows when it is read on
    const std::string_view part(block.data(), static_cast<size_t>(got));
    const auto at = static_cast<size_t>(position - begin_);
    if (at < head_.size() && part.substr(0, head_.size() - at) != std::string_view(head_).substr(at, part.size())) return false;
    crc = crc32c(part, crc);
    position += got;
    if (size < offset_ && position - begin_ >= static_cast<int64_t>(head_.size())) return true;  // there is no CRC of a part
  }
  return size < offset_ || crc == prefix_crc_;
}

/// Whether what is read on from offset_ is the same journal; else nothing is read now, or, when it is another one, ever.
bool JournalReader::may_go_on(const Descriptor& file, int64_t size) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) return false;
  const bool is_another = inode_ != 0 && state.st_ino != inode_;
  const bool is_shorter = size < offset_;
  if ((is_another || is_shorter) && !has_same_beginning(file, size)) return !(shrunk_ = true);
  if (is_shorter) {
    shrunk_ = !patience_.shorter_not_yet();
    return false;
  }
  patience_.is_long_enough();
  inode_ = state.st_ino;
  return true;
}

void JournalReader::consume(std::string_view bytes) {
  if (head_.size() < kHead && static_cast<int64_t>(head_.size()) == offset_ - begin_) head_ += bytes.substr(0, kHead - head_.size());
  prefix_crc_ = crc32c(bytes, prefix_crc_);
}

JournalReader::Look JournalReader::read_on(const std::function<void(const Record&)>& visit,
                                           const std::function<void(const StepRecord&)>& visit_step) {
  const Descriptor file = open_run_file(path_, O_RDONLY);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) {
    if (errno == ESTALE) return Look::stale;
    throw_file_error("read", path_);
  }
  if (!may_go_on(file, state.st_size)) return Look::done;
  std::string pending;
  int64_t passed_over = 0;  // of a line that is longer than any record, and is none
  uint32_t crc_of_passed = 0;
  std::string block(kBlock, '\0');
  for (int64_t position = offset_;;) {
    const ssize_t got = ::pread(file.get(), block.data(), block.size(), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESTALE) return Look::stale;
    if (got < 0) throw_file_error("read", path_);
    if (got == 0) break;
    position += got;
    size_t begin = 0, look_from = pending.size();
    pending.append(block, 0, static_cast<size_t>(got));
    for (size_t end; (end = pending.find('\n', look_from)) != std::string::npos; begin = look_from = end + 1) {
      const std::string_view line = std::string_view(pending).substr(begin, end - begin);
      const int64_t line_end = offset_ + passed_over + static_cast<int64_t>(line.size()) + 1;
      const bool is_record = passed_over == 0 && take_line(line, visit, visit_step);
      if (is_record) patience_.came();
      if (!is_record && passed_over == 0 &&
          patience_.not_yet(line_end, std::max<int64_t>(position, state.st_size), line.find('\0') != std::string_view::npos)) {
        ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);  // the pages that this machine has are old: the next look asks the server
        return Look::done;
      }
      if (!is_record) ++bad_lines_;
      const std::string_view with_newline = std::string_view(pending).substr(begin, end - begin + 1);
      if (passed_over > 0)
        prefix_crc_ = crc32c(with_newline, crc_of_passed);
      else
        consume(with_newline);
      offset_ = line_end;
      passed_over = 0;
    }
    pending.erase(0, begin);
    if (pending.size() <= kLongestLine) continue;
    crc_of_passed = crc32c(pending, passed_over == 0 ? prefix_crc_ : crc_of_passed);
    passed_over += static_cast<int64_t>(pending.size()), pending.clear();
  }
  return Look::done;
}

bool JournalReader::skip_to_end(int64_t bytes) {
  const Descriptor file = open_run_file(path_, O_RDONLY);
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
    if (!line.starts_with("{\"n\":") || !seal_holds(line)) continue;
    std::from_chars(line.data() + 5, line.data() + line.size(), number);
    if (number < 0) continue;
    begin_ = offset_ = start + static_cast<int64_t>(begin);
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

JournalWriter::JournalWriter(const std::filesystem::path& path, const std::function<void(const std::string&)>& report, int64_t known)
    : path_(path), file_(open_run_file(path, O_RDWR | O_CREAT | O_APPEND)) {
  JournalReader reader(path);
  reader.poll([](const Record&) {});
  size_ = reader.line_bytes();
  holes_ = reader.holes();
  next_number_ = reader.next_number();
  largest_step_ = reader.largest_step();
  end_last_line(known > next_number_, report);
  if (const int64_t gone = known - next_number_; gone > 0) {
    if (holes_.empty() || holes_.back().before_step >= 0) holes_.push_back({next_number_, 0, reader.step(), -1, false});
    holes_.back().count += gone;
    next_number_ = known;
  }
  for (const JournalHole& hole : holes_) report(path.string() + ": " + describe(hole));
  sync();
  sync_directory(path.parent_path());
}

/// What stands behind the last newline: a line that was being written, which is cut off; or, when it is `known` that it had been
/// written, a damaged one, which stays.
void JournalWriter::end_last_line(bool known, const std::function<void(const std::string&)>& report) {
  const int64_t rest = file_size_of(file_, path_) - size_;
  if (rest <= 0) return;
  if (known) {
    if (::write(file_.get(), "\n", 1) != 1) throw_file_error("write", path_);
    size_ += rest + 1;
    return;
  }
  if (::ftruncate(file_.get(), size_) != 0) throw_file_error("truncate", path_);
  report(path_.string() + ": " + std::to_string(rest) + " bytes behind record " + std::to_string(next_number_ - 1) +
         " are an unfinished line and were cut off");
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
  if (unsynced_ >= kRecordsBetweenSyncs || std::chrono::steady_clock::now() - last_sync_ >= kTimeBetweenSyncs) sync_aside();
}

void JournalWriter::sync_aside() try {
  if (!syncing_) syncing_ = std::make_unique<FileThread>();
  if (syncing_->busy()) return;
  syncing_->add([file = file_.get(), path = path_] {
    if (::fdatasync(file) != 0) throw_file_error("sync", path);  // never tried again: the kernel may have dropped the pages
  });
  unsynced_ = 0;
  last_sync_ = std::chrono::steady_clock::now();
} catch (...) {
  broken_ = true;
  throw;
}

void JournalWriter::sync() {
  if (broken_) return;
  try {
    if (syncing_) syncing_->wait();
  } catch (...) {
    broken_ = true;
    throw;
  }
  if (::fdatasync(file_.get()) != 0) give_up("sync");
  unsynced_ = 0;
  last_sync_ = std::chrono::steady_clock::now();
}

}  // namespace saccade

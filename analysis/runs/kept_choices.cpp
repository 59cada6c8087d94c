#include "analysis/runs/kept_choices.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <sstream>

#include "analysis/runs/files.h"
#include "analysis/runs/small_files.h"
#include "kernels/engine/error.h"
#include "models/corpus/crc32c.h"

namespace saccade {
namespace {

constexpr size_t kCrcDigits = 8;

}  // namespace

void KeptChoices::read() {
  read_ = true;
  std::string text;
  try {
    if (!std::filesystem::exists(file_)) return;
    text = read_small_text(file_, kMostBytes);
  } catch (const std::exception&) {  // unreadable: it is timed again
    return;
  }
  text.resize(text.rfind('\n') + 1);  // none: npos + 1. What follows is not whole
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < kCrcDigits + 4 || line[kCrcDigits] != ' ') continue;
    const std::string_view rest = std::string_view(line).substr(kCrcDigits + 1);
    if (line.compare(0, kCrcDigits, crc32c_digits(rest)) != 0) continue;
    int choice = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), choice);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != ' ') continue;
    known_[std::string(end + 1, rest.data() + rest.size())] = choice;
  }
}

std::optional<int> KeptChoices::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!read_) read();
  const auto found = known_.find(name);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void KeptChoices::keep(const std::string& name, int choice) {
  const std::lock_guard lock(mutex_);
  if (name.empty() || name.find('\n') != std::string::npos) return;
  known_[name] = choice;
  const std::string rest = std::to_string(choice) + " " + name, line = crc32c_digits(rest) + " " + rest + "\n";
  try {
    make_folders_above(file_);
  } catch (const Error&) {
    return;
  }
  const Descriptor file(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat state {};
  if (!file || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  if (static_cast<size_t>(state.st_size) + line.size() <= kMostBytes) static_cast<void>(write_all(file.get(), line));
}

}  // namespace saccade

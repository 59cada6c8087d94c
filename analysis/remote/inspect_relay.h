#pragma once
#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "analysis/runs/files.h"

namespace saccade {

/// `saccade inspect RUN --serve` on this machine, asked for somebody on another one: a line in, a line out.
class InspectRelay {
 public:
  /// Throws Error where it cannot be started.
  InspectRelay(const std::filesystem::path& program, const std::filesystem::path& run, int64_t checkpoint);
  ~InspectRelay();
  InspectRelay(const InspectRelay&) = delete;
  InspectRelay& operator=(const InspectRelay&) = delete;

  /// The answer, without the newline. One question at a time. Throws Error with the helper's last words when it has ended.
  std::string answer(std::string_view line);
  void kill();  ///< whatever it is at

 private:
  std::string last_words();

  std::mutex one_;
  pid_t process_ = -1;
  Descriptor to_, from_, errors_;
  std::string held_;
};

}  // namespace saccade

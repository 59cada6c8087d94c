// saccade inspect RUN --serve: answers about a checkpoint, for the window and for programs.
#include "app/cli/inspect_serve.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "analysis/inspection/service.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace {

/// Lines of a file descriptor. Of one that is too long only as much is kept as shows that it is.
class Lines {
 public:
  Lines(int from, size_t longest) : from_(from), longest_(longest) {}

  /// Without its end; nothing at the end of the input.
  std::optional<std::string> next() {
    std::string line;
    for (;;) {
      if (at_ == held_ && !fill()) return line.empty() ? std::nullopt : std::optional(line);
      const char c = buffer_[at_++];
      if (c == '\n') return line;
      if (line.size() <= longest_) line += c;
    }
  }

 private:
  bool fill() {
    ssize_t got = 0;
    while ((got = ::read(from_, buffer_, sizeof buffer_)) < 0 && errno == EINTR) {
    }
    at_ = 0, held_ = got > 0 ? static_cast<size_t>(got) : 0;
    return held_ > 0;
  }

  int from_;
  size_t longest_, at_ = 0, held_ = 0;
  char buffer_[1 << 16];
};

/// What it may take in all; less where there is a lower limit already.
void limit_memory([[maybe_unused]] int64_t gib) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take terabytes of address space
  rlimit limit{};
  const rlim_t most = static_cast<rlim_t>(gib) << 30;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= most)) return;
  limit.rlim_cur = most;
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int serve_inspection(const InspectServe& options) {
  limit_memory(options.memory_gib);
  InspectionService service(options.run, options.checkpoint);
  Lines lines(STDIN_FILENO, static_cast<size_t>(InspectionService::kLongestLine));
  while (const std::optional<std::string> line = lines.next()) {
    const std::string answer = service.answer(*line) + "\n";
    if (std::fwrite(answer.data(), 1, answer.size(), stdout) != answer.size() || std::fflush(stdout) != 0)
      throw Error("nobody takes the answers");
  }
  return 0;
}

}  // namespace saccade::cli

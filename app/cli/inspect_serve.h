#pragma once
#include <cstdint>
#include <string>

namespace saccade::cli {

struct InspectServe {
  std::string run;
  int64_t checkpoint = 0;  ///< 0: the newest
  int64_t memory_gib = 16;
};
/// Answers requests on stdin, a line each, until it ends (docs/inspect.md). Takes at most so much memory. Exit code.
int serve_inspection(const InspectServe& options);

}  // namespace saccade::cli

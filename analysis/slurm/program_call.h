#pragma once
#include <string>
#include <vector>

namespace saccade {

/// What a program said and how it ended.
struct ProgramAnswer {
  int code = 0;            ///< exit code; 127 where it could not be started; 128 + the signal that ended it
  bool timed_out = false;  ///< it was killed for it took too long; what it had begun may go on elsewhere
  std::string out, err;    ///< at most 64 MiB of each; what comes beyond is read and dropped
  bool ok() const { return code == 0 && !timed_out; }
  /// The last line of what it said on standard error, else on standard output.
  std::string last_line() const;
};

/// Runs a program, found in PATH, with nothing on its standard input, for so many seconds at most. Children of it that hold its output open
/// are not waited for any longer than that. Throws Error where the system gives no process or pipe.
ProgramAnswer call_program(const std::vector<std::string>& command, double seconds);

}  // namespace saccade

#include "app/cli/this_program.h"

#include "kernels/engine/error.h"

namespace saccade::cli {

std::filesystem::path this_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error("cannot find the file of this program in /proc: " + error.message());
  return program;
}

}  // namespace saccade::cli

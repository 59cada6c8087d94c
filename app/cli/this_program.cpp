#include "app/cli/this_program.h"

#include <string>
#include <string_view>

#include "kernels/engine/error.h"

namespace saccade::cli {

std::filesystem::path this_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error("cannot find the file of this program in /proc: " + error.message());
  constexpr std::string_view kGone = " (deleted)";  // how Linux marks a file that was replaced since this process began
  const std::string name = program.string();
  return name.ends_with(kGone) ? name.substr(0, name.size() - kGone.size()) : name;
}

}  // namespace saccade::cli

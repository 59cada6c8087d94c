#include "models/resources.h"

#include <cstdlib>

#include "kernels/engine/error.h"

namespace saccade {
namespace fs = std::filesystem;

fs::path resource_folder() {
  if (const char* chosen = std::getenv("SACCADE_RESOURCES"); chosen && *chosen) return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path places[] = {program / SACCADE_DATA_FROM_BIN, program / "../../../resources", SACCADE_DATA_FOLDER};
  for (const fs::path& place : places)
    if (fs::is_directory(place / "presets", error)) return fs::weakly_canonical(place);
  throw DataError("the presets that come with the program are not found in " + places[0].lexically_normal().string() + " or " +
                  places[2].string() + "; install it again or set SACCADE_RESOURCES");
}

}  // namespace saccade

#include "models/config/presets.h"

#include <vector>

#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/resources.h"
#include "models/suggest.h"

namespace saccade {
namespace fs = std::filesystem;

fs::path preset_file(const std::string& name) {
  std::vector<std::string> names;
  for (const fs::path& folder : {resource_folder() / "presets", data_folder() / "presets"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".json") continue;
      if (entry.path().stem() == name) return entry.path();
      names.push_back(entry.path().stem().string());
    }
  }
  const std::string near = nearest_name(name, names);
  throw UsageError("there is no preset \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

nlohmann::json preset_config(const std::string& name) {
  const fs::path file = preset_file(name);
  constexpr size_t kLargest = size_t{16} << 20;
  return parse_json_text(read_file(file, kLargest), file.string());
}

}  // namespace saccade

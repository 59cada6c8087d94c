#include "models/config/presets.h"

#include <algorithm>
#include <vector>

#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/resources.h"
#include "models/suggest.h"

namespace saccade {
namespace fs = std::filesystem;

namespace {

/// The presets' files; where a name stands in both folders the one that comes with the program is first.
std::vector<fs::path> preset_files() {
  std::vector<fs::path> files;
  for (const fs::path& folder : {resource_folder() / "presets", data_folder() / "presets"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  return files;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const fs::path& file : preset_files()) names.push_back(file.stem().string());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

fs::path preset_file(const std::string& name) {
  for (const fs::path& file : preset_files())
    if (file.stem() == name) return file;
  const std::string near = nearest_name(name, preset_names());
  throw UsageError("there is no preset \"" + name + "\"" +
                   (near.empty() ? "; saccade architectures --presets lists them" : "; did you mean \"" + near + "\"?"));
}

nlohmann::json preset_config(const std::string& name) {
  const fs::path file = preset_file(name);
  constexpr size_t kLargest = size_t{16} << 20;
  return parse_json_text(read_file(file, kLargest), file.string());
}

}  // namespace saccade

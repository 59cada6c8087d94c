#include "app/cli/version.h"

#include "analysis/runs/provenance.h"

namespace saccade::cli {

nlohmann::json version_json() { return library_versions(); }

std::string version_text() {
  std::string text = "saccade " SACCADE_VERSION;
  const nlohmann::json versions = version_json();
  for (const auto& [name, value] : versions.items())
    if (name != "saccade") text += "\n  " + name + " " + value.get<std::string>();
  return text;
}

}  // namespace saccade::cli

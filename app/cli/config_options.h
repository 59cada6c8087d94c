#pragma once
#include <CLI/CLI.hpp>
#include <memory>

#include "models/config/config.h"

namespace saccade::cli {

/// CONFIG and --set, the same for every command that takes a config.
struct ConfigOptions {
  std::string path;
  std::vector<std::string> overrides;
  RunConfig load() const;  ///< "-" reads standard input; throws UsageError
};
std::shared_ptr<ConfigOptions> add_config_options(CLI::App& app);

/// load_config of a file or, where there is no file so called, of a preset by name; says which settings have old names, on standard error.
RunConfig load_config_file(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace saccade::cli

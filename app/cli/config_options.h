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

/// An option of several values that takes one each time it stands there: --set A=1 --set B=2. `value` is what help calls one.
CLI::Option* one_at_a_time(CLI::Option* option, const std::string& value);

/// load_config of a file or, where there is no file so called, of a preset by name; says which settings have old names, on standard error.
RunConfig load_config_file(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace saccade::cli

#include "app/cli/config_options.h"

#include <iostream>
#include <iterator>

namespace saccade::cli {

RunConfig ConfigOptions::load() const {
  if (path != "-") return load_config(path, overrides);
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  return parse_config(text, "standard input", overrides);
}

std::shared_ptr<ConfigOptions> add_config_options(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  app.add_option("CONFIG", options->path, "Config file (JSON), - for standard input")->required();
  app.add_option("--set", options->overrides, "Override a value: --set training.seed=2")->allow_extra_args(false);
  return options;
}

}  // namespace saccade::cli

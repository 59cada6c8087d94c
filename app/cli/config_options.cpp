#include "app/cli/config_options.h"

#include <filesystem>
#include <iostream>
#include <iterator>

#include "app/cli/command.h"
#include "models/config/presets.h"

namespace saccade::cli {

RunConfig ConfigOptions::load() const {
  if (path != "-") return load_config_file(path, overrides);
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::string note;
  RunConfig config = parse_config(text, "standard input", overrides, &note);
  if (!note.empty()) say(note);
  return config;
}

RunConfig load_config_file(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  const bool named = !path.ends_with(".json") && path.find('/') == std::string::npos && !std::filesystem::exists(path, error);
  std::string note;
  RunConfig config = load_config(named ? preset_file(path).string() : path, overrides, &note);
  if (!note.empty()) say(note);
  return config;
}

CLI::Option* one_at_a_time(CLI::Option* option, const std::string& value) {
  return option->type_name(value)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::shared_ptr<ConfigOptions> add_config_options(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  app.add_option("CONFIG", options->path, "Config file (JSON), a preset's name, - for standard input")->required();
  one_at_a_time(app.add_option("--set", options->overrides, "Override a value: --set training.seed=2"), "KEY=VALUE");
  return options;
}

}  // namespace saccade::cli

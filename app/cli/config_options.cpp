#include "app/cli/config_options.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "app/cli/command.h"
#include "kernels/engine/error.h"
#include "models/config/presets.h"

namespace saccade::cli {

namespace {

/// What is wrong with a config, with the `--set` that said so in place of the file where one did.
std::string told_of_override(const std::string& message, const std::string& origin, const std::vector<std::string>& overrides) {
  for (const std::string& assignment : overrides) {
    std::string pointer = "/" + assignment.substr(0, assignment.find('='));
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const size_t last = pointer.rfind('/');
    const std::string begin = origin + ": ", wrong_value = begin + pointer + " ",
                      wrong_name = begin + pointer.substr(0, last) + " has no setting \"" + pointer.substr(last + 1) + "\"";
    if (message.starts_with(wrong_value) || message.starts_with(wrong_name)) return "--set " + assignment + message.substr(origin.size());
  }
  return message;
}

/// As `load` reads it; `note`, where it has one, is said.
template <class F>
RunConfig read(const std::string& origin, const std::vector<std::string>& overrides, F&& load) try {
  std::string note;
  RunConfig config = load(&note);
  if (!note.empty()) say(note);
  return config;
} catch (const UsageError& error) {
  throw UsageError(told_of_override(error.what(), origin, overrides));
}

}  // namespace

RunConfig ConfigOptions::load() const {
  if (path != "-") return load_config_file(path, overrides);
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  const std::string origin = "standard input";
  return read(origin, overrides, [&](std::string* note) { return parse_config(text, origin, overrides, note); });
}

RunConfig load_config_file(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  const bool named = !path.ends_with(".json") && path.find('/') == std::string::npos && !std::filesystem::exists(path, error);
  const std::string file = named ? preset_file(path).string() : path;
  return read(file, overrides, [&](std::string* note) { return load_config(file, overrides, note); });
}

CLI::Option* one_at_a_time(CLI::Option* option, const std::string& value) {
  return option->type_name(value)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::shared_ptr<ConfigOptions> add_config_options(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  app.add_option("CONFIG", options->path, "Config file (JSON), a preset's name (saccade architectures --presets), - for standard input")
      ->required();
  one_at_a_time(app.add_option("--set", options->overrides, "Override a value: --set training.seed=2"), "KEY=VALUE");
  return options;
}

}  // namespace saccade::cli

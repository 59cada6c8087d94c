#include "app/cli/usage.h"

#include "models/suggest.h"

namespace saccade::cli {
namespace {

/// The innermost command that was recognised, and how it is called: "corpus import", nothing for the program itself.
const CLI::App* innermost(const CLI::App* app, std::string& path) {
  for (std::vector<CLI::App*> chosen; !(chosen = app->get_subcommands()).empty();) {
    app = chosen.back();
    path += (path.empty() ? "" : " ") + app->get_name();
  }
  return app;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at; at = at->get_parent())
    for (const CLI::Option* option : at->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// `word` was given where nothing of that name is known.
std::string unknown(const CLI::App& at, const std::string& path, const std::string& word) {
  const std::string there_is_no = path.empty() ? "there is no " : path + " has no ";
  if (word.rfind('-', 0) == 0) {
    const std::string name = word.substr(0, word.find('=')), near = nearest_name(name, option_names(at));
    return there_is_no + "option " + name + (near.empty() ? "" : "; did you mean " + near + "?");
  }
  const std::vector<std::string> commands = command_names(at);
  if (!commands.empty()) return there_is_no + "command \"" + word + "\"" + did_you_mean(word, commands);
  return path + ": nothing is expected at \"" + word + "\"";
}

std::string describe(const CLI::App& app, const CLI::App& at, const std::string& path, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(true), commands = command_names(at);
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error), missing = dynamic_cast<const CLI::RequiredError*>(&error);
  // What is missing is often what was mistyped.
  const bool mistyped = missing && !rest.empty() && (!commands.empty() || rest.front().rfind('-', 0) == 0);
  if ((extra || mistyped) && !rest.empty()) return unknown(at, path, rest.front());
  if (missing && !commands.empty()) return path + ": expected " + alternatives(commands);
  return (path.empty() ? "" : path + ": ") + error.what();
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  std::string path;
  const CLI::App* at = innermost(&app, path);
  return describe(app, *at, path, error) + " (see saccade" + (path.empty() ? "" : " " + path) + " --help)";
}

}  // namespace saccade::cli

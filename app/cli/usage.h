#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace saccade::cli {

/// What is wrong with a command line, in one line: the command it was meant for, a suggestion where a name is mistyped, and
/// where help is found.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace saccade::cli

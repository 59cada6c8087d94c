#pragma once
#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade::cli {

/// One command of `saccade`: a file in app/cli that registers itself.
///
///     const RegisterCommand plan{{"plan", "What a run will take, without starting it.", "saccade plan run.json --json",
///                                 [](CLI::App& app) {
///                                   auto options = std::make_shared<Options>();
///                                   app.add_option("CONFIG", options->config)->required();
///                                   return [options] { …; return 0; };
///                                 }}};
struct Command {
  std::string name;
  std::string summary;  ///< one line
  std::string example;  ///< shown by --help
  /// Declares arguments and returns what runs after parsing; its value is the exit code. Errors are thrown as saccade::Error.
  std::function<std::function<int()>(CLI::App&)> declare;
};
const std::vector<Command>& commands();

struct RegisterCommand {
  explicit RegisterCommand(Command command);
};

/// Set by --json: data on stdout as JSON, everything else on stderr.
bool json_output();
/// Prints a result: `json` with --json, else `text`. Throws Error when nobody takes it (full device, closed pipe).
void print_result(const nlohmann::json& json, const std::string& text);
/// A line for the person watching (stderr; nothing with --quiet).
void say(const std::string& line);
/// A line that nobody should miss (stderr, with --quiet too), printable whatever others put into it.
void warn(const std::string& line);
/// A progress bar on a terminal, plain lines every few seconds otherwise (stderr).
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();  ///< ends the line
  void update(double fraction, const std::string& detail);
  void clear();  ///< the bar, so that a line can be written; it is drawn again at the next update

 private:
  /// Seconds from now to the end at the pace since the first update; NaN until there is one.
  double left(double fraction, double time) const;

  std::string label_;
  double started_, last_ = 0;
  struct Mark {
    double fraction, time;
  };
  std::optional<Mark> first_;  ///< the first update: what came before it (a corpus read, a run resumed) tells no pace
  bool terminal_, drawn_ = false;
};
/// Raised by SIGINT, SIGTERM and SIGHUP; a second signal more than a second later ends the program at once (exit code 130).
const std::atomic<bool>& stop_requested();
/// Installs those handlers (not where the caller has signals ignored, as nohup does). From then on a terminal or pipe that goes
/// away does not end the work either.
void catch_stop_signals();

}  // namespace saccade::cli

#include <csignal>
#include <filesystem>
#include <iostream>

#include "analysis/runs/kept_choices.h"
#include "app/cli/command.h"
#include "app/cli/exit_code.h"
#include "app/cli/output.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"

using namespace saccade;

namespace {

/// Every failure is one line, whatever file names or other libraries put into it.
int report(const std::string& message, int code) {
  std::cerr << "saccade: " + cli::printable(message) + "\n" << std::flush;  // in one piece: ranks share the terminal
  return code;
}

/// A library that runs out of memory on a GPU does not know what would help.
std::string with_remedy(const std::string& message) {
  const bool has_none = message.find("out of memory") != std::string::npos && message.find("reduce") == std::string::npos;
  return has_none ? message + "; set activation_checkpointing, reduce batch_tokens, sequence_length or width" : message;
}

int perform(const std::function<int()>& action) {
  try {
    return action();
  } catch (const Error& e) {
    return report(with_remedy(e.what()), cli::exit_code_of(e.exit_code()));
  } catch (const std::bad_alloc&) {
    return report(with_remedy("out of memory"), 4);
  } catch (const std::filesystem::filesystem_error& e) {
    return report(e.path1().string() + ": " + e.code().message(), 3);
  } catch (const std::exception& e) {
    return report(std::string("internal error: ") + e.what(), 1);
  }
}

/// Beside the user's other files that can be made again; who has no place for them times products in every process.
void keep_timed_choices() {
  try {
    set_timed_choices(std::make_shared<KeptChoices>(cache_folder() / "timed-choices.txt"));
  } catch (const UsageError&) {
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of the write, with its message
  CLI::App app("Train small sequence models, see where they read from, compare them at equal loss.", "saccade");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", [] { return cli::version_text(); });
  app.fallthrough();
  app.add_flag("--json", cli::output_mode().json, "Data on stdout as JSON");
  app.add_flag("-q,--quiet", cli::output_mode().quiet, "No progress, no remarks");
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage or config, 3 input data or run unusable, 4 device or memory,\n"
      "5 another process has the run, 75 to be continued (SIGUSR2), 130 stopped.\n"
      "Start here: saccade demo");

  std::function<int()> action;
  for (const cli::Command& command : cli::commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    if (!command.example.empty()) sub->footer("Example: " + command.example);
    sub->callback([&action, run = command.declare(*sub)] { action = run; });
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(cli::usage_message(app, e), 2);
  }
  if (!action) {
    std::cout << app.help();
    return 0;
  }
  return perform([&] {
    keep_timed_choices();
    return action();
  });
}

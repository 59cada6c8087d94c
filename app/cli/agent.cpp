// saccade agent --stdio: answers the other end of an ssh connection; for programs.
#include <unistd.h>

#include <csignal>

#include "analysis/remote/agent.h"
#include "app/cli/command.h"
#include "app/cli/this_program.h"
#include "models/corpus/corpus.h"

namespace saccade::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string gpu_command;
  bool stdio = false;
};

/// Ends with its channel, however that ends, and threads that are still at work with it: what they began goes on by itself.
int serve(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  AgentOptions agent{{options.folders.begin(), options.folders.end()}, this_program(), options.gpu_command};
  if (agent.folders.empty()) {
    std::error_code none;
    std::filesystem::create_directories(runs_folder(), none);
    agent.folders.push_back(runs_folder());
  }
  // Never destroyed: threads may use it until the process has gone.
  auto* const served = new Agent(std::move(agent));
  served->serve(STDIN_FILENO, STDOUT_FILENO);
  ::_exit(0);
}

const RegisterCommand command{
    {"agent", "Serve folders of runs to the other end of an ssh connection (saccade host); for programs.",
     "ssh server saccade agent --stdio --serve runs", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       app.add_flag("--stdio", options->stdio, "Talk over standard input and output, and end with them")->required();
       app.add_option("--serve", options->folders, "Folders of runs that may be read and written (default: the runs folder)");
       app.add_option("--gpu-command", options->gpu_command, "Command that names the GPUs with their driver, a line each");
       return [options] { return serve(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli

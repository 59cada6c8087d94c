// saccade fork RUN --step N --out DIR --set KEY=VALUE …: a run that goes on from another one's checkpoint.
#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/ranks_option.h"
#include "app/cli/train_progress.h"

namespace saccade::cli {
namespace {

int run(const Fork& fork, const std::string& out, const RanksOption& ranks_option) {
  const RunConfig config = fork_config(fork);
  return with_ranks(ranks_option, config.device, out, [&](const Ranks& ranks) {
    return finish_training(out, watch_training(config.name, config.training.steps, [&](const RunProgress& progress) {
                             return fork_run(fork, config, out, progress, stop_requested(), ranks);
                           }));
  });
}

/// Where the parent is, beside it.
int fork_there(const OnHost& parent, const Fork& fork, const std::filesystem::path& out) {
  const std::string name = out.filename().string();
  return print_begun(parent.host, name,
                     ask_host(parent.host, {{"ask", "fork"},
                                            {"parent", parent.name},
                                            {"step", fork.step},
                                            {"name", name},
                                            {"set", fork.overrides},
                                            {"token", new_token()}}));
}

const RegisterCommand command{
    {"fork", "Start a run from a checkpoint of another one.",
     "saccade fork runs/first --step 500 --out runs/cooled --set training.schedule=wsd --set training.steps=625 --set "
     "training.cooldown_steps=125",
     [](CLI::App& app) {
       auto fork = std::make_shared<Fork>();
       auto directory = std::make_shared<std::string>();
       auto out = std::make_shared<std::string>();
       auto ranks = add_ranks_option(app);
       app.description(
           "Start a run from a checkpoint of another one: with its weights, its optimizer's state, its count of steps and tokens and its "
           "place "
           "in the text, but with other settings of training. The parent is only read; run.json of the new run names it, the step and the "
           "checkpoint's SHA-256. The model must stay the same.");
       app.add_option("RUN", *directory, "Run directory of the parent")->required();
       app.add_option("--step,--checkpoint", fork->step, "Step of the checkpoint (default: the newest)")
           ->check(CLI::Range(1, 1'000'000'000));
       app.add_option("--out,-o", *out, "Run directory to create")->required();
       one_at_a_time(app.add_option("--set", fork->overrides, "Change a setting of the parent: --set training.steps=2000"), "KEY=VALUE");
       return [=] {
         fork->parent = *directory;
         if (const std::optional<OnHost> parent = on_host(*directory)) return fork_there(*parent, *fork, *out);
         return run(*fork, *out, *ranks);
       };
     }}};

}  // namespace
}  // namespace saccade::cli

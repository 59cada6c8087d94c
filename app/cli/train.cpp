// saccade train CONFIG --out RUN, saccade resume RUN, saccade stop RUN.
#include <filesystem>

#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/output.h"
#include "app/cli/ranks_option.h"
#include "app/cli/run_launch.h"
#include "app/cli/train_progress.h"
#include "kernels/engine/error.h"
#include "models/architectures/registry.h"

namespace saccade::cli {

namespace {

int train(const ConfigOptions& options, const std::string& out, const RanksOption& ranks_option) {
  const RunConfig config = options.load();
  require_divisible(config.training, ranks_option.count(config.device));
  const std::string name = config.name.empty() ? architecture_title(config.architecture) : config.name;
  return with_ranks(ranks_option, config.device, out, [&](const Ranks& ranks) {
    return finish_training(out, watch_training(name, config.training.steps, [&](const RunProgress& progress) {
                             return train_run(config, out, progress, stop_requested(), ranks);
                           }));
  });
}

int resume(const std::string& directory, const ResumeOptions& options, const RanksOption& ranks_option) {
  const Run run(directory);
  const bool finished = run.info().state == RunState::finished;
  if (finished && !options.none()) throw UsageError(directory + " has finished, and a finished run is not changed: train a new one");
  if (finished && run.damage().empty()) say(directory + " had finished before; nothing is left to train");
  const std::string device = run.info().config.value("device", "auto");
  const std::string name = run.info().name.empty() ? run.info().title : run.info().name;
  return with_ranks(finished ? RanksOption{1, 0} : ranks_option, finished ? "cpu" : device, directory, [&](const Ranks& ranks) {
    return finish_training(directory, watch_training(name, run.info().steps, [&](const RunProgress& progress) {
                             return resume_run(directory, progress, stop_requested(), options, ranks);
                           }));
  });
}

/// Where the run is; the host's profile may name a cluster there.
int resume_there(const OnHost& run, const ResumeOptions& options) {
  nlohmann::json request{{"ask", "resume"}, {"run", run.name}, {"set", options.changes}, {"skip_batch", options.skip_batch}};
  if (options.from) request["from"] = *options.from;
  if (options.none()) request["cluster"] = load_host(run.host).cluster;
  return print_begun(run.host, run.name, ask_host(run.host, std::move(request)));
}

int stop(const std::string& directory) {
  if (const std::optional<OnHost> run = on_host(directory)) return print_host_answer(run->host, {{"ask", "stop"}, {"run", run->name}});
  const bool stopped = stop_launched_run(directory) || stop_run(directory);  // also where run.json cannot be read
  if (!stopped) static_cast<void>(Run(directory));                           // there is one
  print_result({{"stopping", stopped}}, stopped ? "asked " + directory + " to write a checkpoint and stop" : directory + " is not running");
  return 0;
}

/// --on: on a host, or as a job of a cluster.
std::shared_ptr<std::string> add_on(CLI::App& app) {
  auto on = std::make_shared<std::string>();
  app.add_option("--on", *on, "Not here: on a host (saccade host list), or as a job of a cluster (saccade cluster list)");
  return on;
}

/// Throws UsageError: a job has the GPUs that its cluster's profile says.
void require_no_ranks(const RanksOption& ranks) {
  if (ranks.ranks > 0 || ranks.gpus > 0 || !ranks.device.empty())
    throw UsageError("--on does not go with --gpus, --ranks and --device; set gpus in the profile of the cluster, or device in the config");
}

const RegisterCommand train_command{
    {"train", "Train a model and record the run.", "saccade train run.json --out runs/first --set training.seed=2", [](CLI::App& app) {
       auto options = add_config_options(app);
       auto ranks = add_ranks_option(app);
       add_device_option(app, ranks);
       auto out = std::make_shared<std::string>();
       app.add_option("--out,-o", *out, "Run directory to create")->required();
       auto on = add_on(app);
       return [=] {
         if (on->empty()) return train(*options, *out, *ranks);
         require_no_ranks(*ranks);
         const nlohmann::json config = to_json(options->load());
         return where_named(*on) == Where::host ? start_on_host(*on, *out, config, false) : launch_run(*out, config, *on);
       };
     }}};

const RegisterCommand resume_command{
    {"resume", "Resume a stopped or crashed run from its last checkpoint.", "saccade resume runs/first", [](CLI::App& app) {
       auto directory = std::make_shared<std::string>();
       auto options = std::make_shared<ResumeOptions>();
       auto from = std::make_shared<int64_t>(-1);
       auto ranks = add_ranks_option(app);
       add_device_option(app, ranks);
       app.description(
           "Resume a stopped or crashed run from its last checkpoint, exactly as it would have gone on. A run that diverged goes back to a "
           "checkpoint with something changed: name at least one option.");
       app.add_option("RUN", *directory, "Run directory")->required();
       app.add_option("--from", *from,
                      "Step of a checkpoint to go back to, 0: the initial weights; later checkpoints and captures are removed")
           ->check(CLI::NonNegativeNumber);
       one_at_a_time(
           app.add_option("--set", options->changes, "Change a setting of the optimizer from there on: training.learning_rate=0.0005"),
           "KEY=VALUE");
       app.add_flag("--skip-batch", options->skip_batch, "Pass over the batch that the run diverged on");
       app.add_flag("--take-over", options->take_over,
                    "The process that had the run, on another machine, has ended: take it once it gave no sign of life for 180 s");
       auto on = add_on(app);
       return [=] {
         if (*from >= 0) options->from = *from;
         const std::optional<OnHost> there = on_host(*directory);
         if (there && !(on->empty() && ranks->ranks == 0 && ranks->gpus == 0 && ranks->device.empty()))
           throw UsageError(*directory + " is a run on " + there->host +
                            " and is resumed there; --on, --gpus, --ranks and --device do not go with it");
         if (there) return resume_there(*there, *options);
         if (on->empty()) return resume(*directory, *options, *ranks);
         if (where_named(*on) == Where::host) throw UsageError(*directory + " is a run of this machine, and cannot be resumed on a host");
         require_no_ranks(*ranks);
         if (!options->none()) throw UsageError("--on does not go with --from, --set and --skip-batch; a job only goes on");
         static_cast<void>(Run(*directory));  // there is one
         return launch_run(*directory, nlohmann::json(), *on);
       };
     }}};

const RegisterCommand stop_command{
    {"stop", "Ask a running run to write a checkpoint and stop.", "saccade stop runs/first", [](CLI::App& app) {
       auto directory = std::make_shared<std::string>();
       app.add_option("RUN", *directory, "Run directory")->required();
       return [=] { return stop(*directory); };
     }}};

}  // namespace
}  // namespace saccade::cli

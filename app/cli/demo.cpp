// saccade demo: three small architectures trained on text of this machine, then compared. Repeating it resumes or shows.
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "analysis/comparison/comparison.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/render.h"
#include "app/cli/runs_option.h"
#include "app/cli/train_progress.h"
#include "kernels/engine/error.h"
#include "models/resources.h"

extern char** environ;

namespace saccade::cli {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string out;
  bool window = true;
};

/// The same text, steps and batches for all three; prose for training, code as the unseen domains.
const std::vector<std::string> kPresets{"transformer-pp-demo", "top1-chunk-exact-demo", "avey-demo"};

bool has_display() {
  const char *x = std::getenv("DISPLAY"), *wayland = std::getenv("WAYLAND_DISPLAY");
  return (x && *x) || (wayland && *wayland);
}

/// Opens the window on the demo's runs; it lives on by itself.
bool open_window(const fs::path& folder) {
  const fs::path workbench = find_workbench();
  if (workbench.empty() || !has_display()) return false;
  std::vector<std::string> arguments{workbench.string(), "--runs", folder.string(), "--page", "live"};
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const bool started = posix_spawn(&child, argv[0], nullptr, &attributes, argv.data(), environ) == 0;
  posix_spawnattr_destroy(&attributes);
  return started;
}

RunState run_one(const fs::path& directory, const std::string& preset) {
  if (!fs::exists(directory / "run.json")) {
    const RunConfig config = load_config(resource_folder() / "presets" / (preset + ".json"));
    return watch_training(config.name, config.training.steps,
                          [&](const RunProgress& p) { return train_run(config, directory, p, stop_requested()); });
  }
  const Run run(directory);
  if (run.info().state == RunState::finished) {
    say(run.info().name + ": finished before, shown again (" + directory.string() + ")");
    return RunState::finished;
  }
  say(run.info().name + ": goes on from step " + std::to_string(run.info().step));
  return watch_training(run.info().name, run.info().steps,
                        [&](const RunProgress& p) { return resume_run(directory, p, stop_requested()); });
}

std::vector<std::string> write_figures(const std::vector<const Run*>& runs, const fs::path& folder) {
  fs::create_directories(folder);
  const bool pictures = !find_workbench().empty();
  std::vector<std::string> files;
  const auto write = [&](const Figure& figure, const std::string& name) {
    for (const char* suffix : {".pdf", ".png", ".csv"}) {
      if (!pictures && std::string(suffix) != ".csv") continue;
      const fs::path file = folder / (name + suffix);
      write_figure(figure, file);
      files.push_back(file.string());
    }
  };
  write(trajectory_figure(runs), "ood-against-pretraining");
  write(loss_figure(runs, XAxis::tokens, false, false), "loss");
  for (const Run* run : runs) {
    const std::vector<int64_t> steps = run->capture_steps();
    if (steps.empty()) continue;
    const std::vector<Capture> captures = run->captures(steps.back());
    if (captures.empty()) continue;
    write(capture_figure(captures[0], main_map(captures[0], 0), 0, 0), "reads-" + run->info().name);
  }
  if (!pictures) say("pictures need saccade-workbench, which is not installed; the figures' data are in the .csv files");
  return files;
}

int run(const Options& options) {
  const fs::path folder = options.out.empty() ? runs_folder() / "demo" : fs::path(options.out);
  fs::create_directories(folder);
  catch_stop_signals();
  const bool window = options.window && open_window(folder);
  say(window ? "The window opens on " + folder.string()
             : "Training in " + folder.string() + (options.window ? " (no display: without the window)" : ""));
  std::vector<std::string> directories;
  for (const std::string& preset : kPresets) {
    const fs::path directory = folder / preset;
    const RunState state = run_one(directory, preset);
    directories.push_back(directory.string());
    if (state == RunState::stopped) {
      say("stopped; saccade demo goes on from here");
      return 130;
    }
    if (state == RunState::diverged) throw Error(directory.string() + ": the loss is not finite; see log.txt there");
  }
  const OpenedRuns runs = open_runs(directories);
  const Comparison comparison = compare(runs.pointers());
  const std::vector<std::string> files = write_figures(runs.pointers(), folder / "figures");
  std::string text = "\n" + to_text(comparison) + "\nFigures:\n";
  for (const std::string& file : files) text += "  " + file + "\n";
  const std::string another = (resource_folder() / "presets" / "top1-chunk-approx-demo.json").string();
  text += "\nNext:\n  saccade-workbench --runs " + folder.string() + "\n  saccade inspect " + directories[1] +
          " --layer 1 --head 0 --query 200\n  saccade train " + another + " --out " + (folder / "top1-chunk-approx-demo").string() + "\n";
  print_result({{"runs", directories}, {"comparison", to_json(comparison)}, {"figures", files}}, text);
  return 0;
}

const RegisterCommand command{
    {"demo", "Train Transformer++, Top-1 Chunk and Avey on text of this machine, and compare them.", "saccade demo", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       app.add_option("--out,-o", options->out, "Folder for the runs (default: demo in the runs folder)");
       app.add_flag("!--no-window", options->window, "Do not open the window");
       return [options] { return run(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli

// saccade demo: the study of that name, three small architectures on text of this machine, trained here and now instead of in the queue.
// Repeating it resumes or shows.
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "analysis/comparison/comparison.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/studies/report/report.h"
#include "analysis/studies/study_folder.h"
#include "analysis/training/training_run.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/output.h"
#include "app/cli/render.h"
#include "app/cli/runs_option.h"
#include "app/cli/train_progress.h"
#include "kernels/engine/error.h"

extern char** environ;

namespace saccade::cli {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string out;
  std::vector<std::string> overrides;
  bool window = true;
};

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

/// Begins a run that the study wants, or goes on with it.
RunState train_one(const fs::path& directory, const WantedRun& wanted) {
  if (!wanted.there) {
    const RunConfig& config = wanted.run.config;
    return watch_training(config.name, config.training.steps,
                          [&](const RunProgress& p) { return train_run(config, directory, p, stop_requested()); });
  }
  say(wanted.name + ": goes on from step " + std::to_string(wanted.there->step));
  return watch_training(wanted.name, wanted.there->steps, [&](const RunProgress& p) { return resume_run(directory, p, stop_requested()); });
}

/// Trains what the study still lacks, one run after the other; false when the user stopped it.
bool train_all(const fs::path& study) {
  for (;;) {
    const StudyView view = view_study(study);
    const std::vector<const WantedRun*> ready = view.ready();
    for (const WantedRun& wanted : view.wanted)
      if (wanted.status == WantedRun::Status::diverged)
        throw Error((study / "runs" / wanted.name).string() + ": the loss is not finite; see log.txt there");
    if (view.complete()) return true;
    if (ready.empty()) throw Error(study.string() + ": another process trains it; see saccade study status " + study.string());
    if (train_one(study / "runs" / ready.front()->name, *ready.front()) == RunState::stopped) return false;
  }
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
  write(trajectory_figure(runs, "", {}, {}, {}, tuning_by_study()), "ood-against-pretraining");
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
  const Study study = load_study(find_study("demo"), options.overrides);
  create_study_folder(folder, study);
  catch_stop_signals();
  const bool window = options.window && open_window(folder / "runs");
  say(window ? "The window opens on " + folder.string()
             : "Training in " + folder.string() + (options.window ? " (no display: without the window)" : ""));
  if (!train_all(folder)) {
    say("stopped; saccade demo goes on from here");
    return 130;
  }
  const StudyView view = view_study(folder);
  std::vector<std::string> directories;
  for (const WantedRun& wanted : view.wanted) directories.push_back((folder / "runs" / wanted.name).string());
  const OpenedRuns runs = open_runs(directories);
  const Comparison comparison = compare(runs.pointers(), {}, "", {}, {}, tuning_by_study());
  std::vector<std::string> files = write_figures(runs.pointers(), folder / "figures");
  const WrittenReport report = write_report(make_report(view, say), folder / "report", write_figure);
  if (!report.not_drawn.empty()) say("the report's figures are not drawn: " + report.not_drawn);
  for (const fs::path& file : report.files) files.push_back(file.string());
  std::string text = "\n" + to_text(comparison) + "\nFigures and report:\n";
  for (const std::string& file : files) text += "  " + file + "\n";
  text += "\nNext:\n  saccade-workbench --runs " + (folder / "runs").string() + "\n  saccade inspect " + directories[1] +
          " --layer 1 --head 0 --query 200\n  saccade study status " + folder.string() + "\n  saccade study plan tuned-tiny\n";
  print_result({{"study", folder.string()}, {"runs", directories}, {"comparison", to_json(comparison)}, {"figures", files}}, text);
  return 0;
}

const RegisterCommand command{
    {"demo", "Train Transformer++, Top-1 Chunk and Avey on text of this machine, and compare them.", "saccade demo", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       app.add_option("--out,-o", options->out, "Folder for the runs (default: demo in the runs folder)");
       one_at_a_time(app.add_option("--set", options->overrides, "Set a value in every config: --set training.steps=100"), "KEY=VALUE");
       app.add_flag("!--no-window", options->window, "Do not open the window");
       return [options] { return run(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli

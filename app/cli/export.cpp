// saccade export FIGURE RUN… --out FILE: the paper's figures, without a display.
#include <cstdlib>
#include <fstream>

#include "analysis/figures/figure.h"
#include "app/cli/command.h"
#include "app/cli/render.h"
#include "app/cli/runs_option.h"
#include "kernels/error.h"

namespace saccade::cli {
namespace {

struct Options {
  std::string figure, out, x = "tokens", domain, map, series;
  std::vector<std::string> runs;
  bool log_x = false, log_y = false, normalized = false;
  int64_t step = -1, sample = 0, layer = 0, head = 0;
  std::optional<double> at_loss;
};

XAxis parse_x(const std::string& x) {
  if (x == "step") return XAxis::step;
  if (x == "tokens") return XAxis::tokens;
  if (x == "flops") return XAxis::flops;
  return XAxis::seconds;
}

/// The map that shows a capture best: chunk scores or split similarities where something was selected, else the weights.
std::string default_map(const Capture& capture) {
  for (const char* name : {"score", "maxsim"})
    for (const CapturedMap& map : capture.maps)
      if (map.name == name) return name;
  return "weights";
}

Figure selection_figure(const Options& o, const Run& run) {
  const std::vector<int64_t> steps = run.capture_steps();
  if (steps.empty()) throw DataError(run.info().directory.string() + ": holds no capture yet");
  const std::vector<Capture> captures = run.captures(o.step < 0 ? steps.back() : o.step);
  if (o.sample < 0 || o.sample >= static_cast<int64_t>(captures.size()))
    throw UsageError("--sample is " + std::to_string(o.sample) + ", expected 0 … " + std::to_string(captures.size() - 1));
  const Capture& capture = captures[static_cast<size_t>(o.sample)];
  return capture_figure(capture, o.map.empty() ? default_map(capture) : o.map, o.layer, o.head);
}

int run(const Options& o) {
  const OpenedRuns runs = open_runs(o.runs);
  const auto list = runs.pointers();
  Figure figure;
  if (o.figure == "loss") figure = loss_figure(list, parse_x(o.x), o.log_x, o.log_y);
  else if (o.figure == "trajectory") figure = trajectory_figure(list, o.domain, o.at_loss);
  else if (o.figure == "entropy") figure = entropy_figure(list, parse_x(o.x), o.normalized);
  else if (o.figure == "series") figure = series_figure(list, o.series, parse_x(o.x), o.log_x, o.log_y);
  else figure = selection_figure(o, runs.runs.front());
  write_figure(figure, o.out);
  print_result({{"figure", figure.id}, {"file", o.out}}, "wrote " + o.out);
  return 0;
}

const RegisterCommand command{
    {"export", "Write a figure as PDF, SVG, PNG or CSV, or its data as JSON.", "saccade export trajectory runs/* --out ood.pdf", [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.add_option("FIGURE", o->figure, "loss, trajectory, entropy, selection or series")
           ->required()
           ->check(CLI::IsMember({"loss", "trajectory", "entropy", "selection", "series"}));
       app.add_option("RUN", o->runs, "Run directories, or folders of runs")->required();
       app.add_option("--out,-o", o->out, "File to write: .pdf .svg .png .csv .json")->required();
       app.add_option("--x", o->x, "x axis: step, tokens, flops or seconds")->check(CLI::IsMember({"step", "tokens", "flops", "seconds"}));
       app.add_flag("--log-x", o->log_x);
       app.add_flag("--log-y", o->log_y);
       app.add_flag("--normalized", o->normalized, "Entropy divided by its maximum");
       app.add_option("--series", o->series, "Which series, for FIGURE series: gradient_norm, captured_mass/layer0 …");
       app.add_option("--domain", o->domain, "One OOD domain (default: the mean)");
       app.add_option("--at-loss", o->at_loss, "Mark this pre-training loss");
       app.add_option("--step", o->step, "Capture step (default: the newest)");
       app.add_option("--sample", o->sample, "Captured sample");
       app.add_option("--layer", o->layer);
       app.add_option("--head", o->head);
       app.add_option("--map", o->map, "weights, score or maxsim (default: what was selected)");
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli

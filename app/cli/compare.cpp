// saccade compare RUN…: parameters, speed, losses at the end and at equal pre-training loss.
#include "analysis/comparison/comparison.h"
#include "analysis/comparison/equal_cost.h"

#include "analysis/studies/study_folder.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/runs_option.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::optional<double> at_loss;
  std::string domain;
  std::string equal;  ///< besides the loss; empty: nothing
  PretrainingOption pretraining;
};

int run(const Options& options) {
  const OpenedRuns runs = open_runs(options.runs);
  require_domain(runs, options.domain);
  if (options.at_loss && !std::isfinite(*options.at_loss)) throw UsageError("--at-loss expects a loss in nats");
  const PretrainingLoss pretraining = options.pretraining.chosen(runs);
  const Comparison comparison = compare(runs.pointers(), options.at_loss, options.domain, {}, pretraining, tuning_by_study());
  nlohmann::json json = to_json(comparison);
  json["skipped"] = runs.skipped;
  std::string text = to_text(comparison);
  if (!options.equal.empty()) {
    const EqualCost equal = compare_at_equal(runs.pointers(), parse_spent(options.equal), options.domain, pretraining);
    json["equal"] = to_json(equal);
    text += "\n" + to_text(equal);
  }
  print_result(json, text);
  return 0;
}

const RegisterCommand command{
    {"compare", "Compare runs: parameters, speed, ID and OOD loss, at the end and at equal pre-training loss.",
     "saccade compare runs/* --at-loss 2.1", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       app.add_option("RUN", options->runs, "Run directories, or folders of runs")->required();
       app.add_option("--at-loss", options->at_loss,
                      "Pre-training loss to compare at (default: the lowest that the first run and the most others have passed)");
       app.add_option("--equal", options->equal,
                      "Read the losses also at equal tokens, FLOPs or seconds of training (of the steps alone, on "
                      "one device): at what the run has taken that took least")
           ->check(CLI::IsMember({"tokens", "flops", "seconds"}));
       app.add_option("--domain", options->domain, "One OOD domain (default: the mean of all)");
       add_pretraining_option(app, options->pretraining);
       return [options] { return run(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli

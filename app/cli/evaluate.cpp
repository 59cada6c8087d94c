// saccade evaluate RUN: loss on every domain's frozen batches from a checkpoint.
#include "analysis/training/training_run.h"

#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "kernels/error.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

/// 0 is the newest.
void require_checkpoint(const std::string& directory, int64_t step) {
  const Run run(directory);
  const std::vector<int64_t> steps = step_files(directory, kCheckpoints);
  if (step == 0 || steps.empty() || std::find(steps.begin(), steps.end(), step) != steps.end()) return;
  std::vector<std::string> names;
  for (const int64_t s : steps) names.push_back(std::to_string(s));
  throw UsageError("--step " + std::to_string(step) + ": " + directory + " has checkpoints of step " + alternatives(names));
}

int run(const std::string& directory, int64_t step) {
  require_checkpoint(directory, step);
  LoadedRun loaded = load_run(directory, step);
  const Corpus corpus = Corpus::open(loaded.config.data.corpus, [](const std::string& line) { say(line); });
  nlohmann::json json{{"run", directory}, {"step", loaded.step}, {"losses", nlohmann::json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const Trainer::Frozen& batch : evaluation_batches(loaded.config, corpus, *loaded.tokenizer)) {
    const Trainer::Evaluation evaluation = loaded.trainer->evaluate(batch);
    const auto& train = loaded.config.data.train;
    const bool ood = std::find(train.begin(), train.end(), batch.domain) == train.end();
    rows.push_back({batch.domain, ood ? "OOD" : "training domain", number(evaluation.loss, 4), number(std::exp(evaluation.loss), 2),
                    std::to_string(batch.sequences * batch.length)});
    json["losses"].push_back({{"domain", batch.domain}, {"ood", ood}, {"loss", evaluation.loss}, {"by_position", evaluation.by_position}});
  }
  print_result(json, directory + " at step " + std::to_string(loaded.step) + "\n" +
                         table({"domain", "kind", "loss (nats)", "perplexity", "tokens"}, rows));
  return 0;
}

const RegisterCommand command{{"evaluate", "Loss of a checkpoint on every domain, on the run's frozen batches.",
                               "saccade evaluate runs/first --step 500", [](CLI::App& app) {
                                 auto directory = std::make_shared<std::string>();
                                 auto step = std::make_shared<int64_t>(0);
                                 app.add_option("RUN", *directory, "Run directory")->required();
                                 app.add_option("--step", *step, "Checkpoint (default: the newest)");
                                 return [=] { return run(*directory, *step); };
                               }}};

}  // namespace
}  // namespace saccade::cli

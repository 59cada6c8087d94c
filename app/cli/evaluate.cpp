// saccade evaluate RUN: losses of a checkpoint on frozen text, with their standard errors.
#include <algorithm>
#include <cmath>

#include "analysis/evaluation/run_evaluation.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/evaluate_tasks.h"
#include "app/cli/output.h"
#include "app/cli/runs_option.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

struct Options {
  std::string run, split = "validation";
  bool by_position = false;
  RunEvaluationOptions evaluation;
  TaskCommand tasks;
};

/// 0 is the newest.
void require_checkpoint(const std::string& directory, int64_t step) {
  const Run run(directory);
  note_old_names(run.info());
  const std::vector<int64_t> steps = step_files(directory, kCheckpoints);
  if (step == 0 || steps.empty() || std::find(steps.begin(), steps.end(), step) != steps.end()) return;
  std::vector<std::string> names;
  for (const int64_t s : steps) names.push_back(std::to_string(s));
  throw UsageError("--checkpoint " + std::to_string(step) + ": " + directory + " has checkpoints of step " + alternatives(names));
}

/// A row for each bin of positions, a column for each domain.
std::string position_table(const RunEvaluation& e) {
  std::vector<std::string> header{"positions"};
  std::vector<std::vector<std::string>> rows;
  for (const DomainEvaluation& d : e.domains) {
    header.push_back(d.domain);
    const std::vector<PositionLoss> bins = loss_by_position(d.result.by_position);
    rows.resize(bins.size());
    for (size_t i = 0; i < bins.size(); ++i) {
      const auto& [begin, end, loss] = bins[i];
      if (rows[i].empty()) rows[i].push_back(std::to_string(begin) + (end - begin > 1 ? " to " + std::to_string(end - 1) : ""));
      rows[i].push_back(number(loss, 4));
    }
  }
  return "\nloss (nats) by position\n" + table(header, rows);
}

RunEvaluation evaluate(const Options& options) {
  Progress bar("evaluate");
  return evaluate_run(
      options.run, options.evaluation,
      {[](const std::string& line) { say(line); }, [&](double fraction, const std::string& domain) { bar.update(fraction, domain); }});
}

int run(Options options) {
  require_checkpoint(options.run, options.evaluation.checkpoint);
  if (!options.tasks.tasks.empty()) {
    options.tasks.run = options.run;
    options.tasks.options.checkpoint = options.evaluation.checkpoint;
    options.tasks.options.device = options.evaluation.device;
    return evaluate_tasks(options.tasks);
  }
  options.evaluation.split = options.split == "test" ? Split::test : Split::validation;
  const RunEvaluation e = evaluate(options);
  nlohmann::json json{{"run", options.run},
                      {"step", e.step},
                      {"corpus", e.corpus},
                      {"corpus_hash", e.corpus_hash},
                      {"split", to_string(e.split)},
                      {"sequence_length", e.length},
                      {"device", to_string(e.device)},
                      {"precision", e.precision},
                      {"losses", nlohmann::json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const DomainEvaluation& d : e.domains) {
    rows.push_back({d.domain, d.ood ? "OOD" : "training domain", number(d.result.loss, 4), number(d.result.standard_error, 4),
                    number(std::exp(d.result.loss), 2), number(d.result.bits_per_byte, 4), std::to_string(d.sequences),
                    std::to_string(d.tokens)});
    json["losses"].push_back({{"domain", d.domain},
                              {"ood", d.ood},
                              {"loss", d.result.loss},
                              {"standard_error", d.result.standard_error},
                              {"bits_per_byte", d.result.bits_per_byte},
                              {"sequences", d.sequences},
                              {"tokens", d.tokens},
                              {"by_position", d.result.by_position}});
  }
  print_result(
      json, options.run + " at step " + std::to_string(e.step) + ", " + to_string(e.split) + " text of " + e.corpus + ", sequences of " +
                std::to_string(e.length) + " tokens\n" +
                table({"domain", "kind", "loss (nats)", "± standard error", "perplexity", "bits per byte", "sequences", "tokens"}, rows) +
                (options.by_position ? position_table(e) : ""));
  return 0;
}

void declare_tasks(CLI::App& app, TaskCommand& o) {
  CLI::Option* task =
      app.add_option("--task", o.tasks,
                     "Score tasks with choices instead, names with commas between (saccade tasks lists them) or a JSON file; "
                     "results stay in RUN/evaluation")
          ->delimiter(',')
          ->allow_extra_args(false);
  app.add_option("--data", o.options.data, "Folder with the tasks' files, or the file of one")->needs(task);
  app.add_option("--checkpoints", o.checkpoints, "Several of them: steps or shares of the run (90%,95%,100%)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(task);
  app.add_option("--limit", o.options.items.limit, "The first items only")->check(CLI::Range(1, 1'000'000'000))->needs(task);
  app.add_option("--shots", o.options.items.shots, "Examples before each item (default: the task's)")
      ->check(CLI::Range(0, 1000))
      ->needs(task);
  app.add_option("--max-length", o.options.max_length,
                 "Tokens that the model reads at most; beginnings are cut off (default: the trained length where positions end there, "
                 "else any)")
      ->check(CLI::Range(1, 1 << 24))
      ->needs(task);
  app.add_option("--prefix", o.prefix, "none, or end_of_text before every item")
      ->check(CLI::IsMember({"none", "end_of_text"}))
      ->needs(task)
      ->capture_default_str();
  app.add_flag("--strict-spaces", o.options.items.strict_spaces,
               "One space before the choices of COPA and WSC273, where the published numbers have two")
      ->needs(task);
  app.add_flag("--again", o.options.again, "Also what stands in the run already")->needs(task);
}

const RegisterCommand command{
    {"evaluate", "Losses of a checkpoint on frozen text, with their standard errors.",
     "saccade evaluate runs/first --checkpoint 500 --split test --length 1024 --tokens 200000", [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.description(
           "Losses of a checkpoint on frozen text, in nats per token, with their standard errors over the sequences, and in bits per byte "
           "of text, "
           "by which models of different tokenizers compare. Without options: on "
           "what the run was evaluated on while it trained. Only the weights are loaded, and no training text.");
       app.add_option("RUN", o->run, "Run directory")->required();
       app.add_option("--checkpoint,--step", o->evaluation.checkpoint,
                      "Step of the checkpoint (default: the newest; no other takes its place when it is damaged)")
           ->check(CLI::Range(1, 1'000'000'000));
       app.add_option("--split", o->split, "validation or test")->check(CLI::IsMember({"validation", "test"}))->capture_default_str();
       app.add_option("--corpus", o->evaluation.corpus, "Another corpus (default: the run's)");
       app.add_option("--domains", o->evaluation.domains,
                      "Domains, with commas between (default: the run's; all of another corpus that have text in the split)")
           ->delimiter(',')
           ->allow_extra_args(false);
       app.add_option("--length", o->evaluation.length, "Tokens in a sequence (default: the run's)")->check(CLI::Range(1, 1 << 20));
       app.add_option("--tokens", o->evaluation.tokens,
                      "Tokens of every domain, in whole sequences, as far as there is text (default: as while training)")
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
       app.add_flag("--by-position", o->by_position, "Also the mean loss over positions 0, 1, 2 to 3, 4 to 7 and so on in a sequence");
       app.add_option("--device", o->evaluation.device, "cpu, cuda:N or auto (default: the run's)");
       declare_tasks(app, o->tasks);
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli

// saccade evaluate RUN: losses of a checkpoint on frozen text, with their standard errors.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/look_ahead.h"
#include "analysis/evaluation/run_evaluation.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/evaluate_lengths.h"
#include "app/cli/evaluate_tasks.h"
#include "app/cli/output.h"
#include "app/cli/runs_option.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string split = "validation";
  double paired_error = 0.005;
  bool by_position = false;
  std::string reading = "one_pass";
  RunEvaluationOptions evaluation;
  int64_t min_tokens = 0;
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
  std::map<int64_t, int64_t> longest;  // end of a bin by its begin
  for (const DomainEvaluation& d : e.domains) {
    header.push_back(d.domain);
    const std::vector<PositionLoss> bins = loss_by_position(d.result.by_position, d.result.targets_at);
    for (size_t i = rows.size(); i < bins.size(); ++i) rows.emplace_back(header.size() - 1, "");  // short documents end before
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back(i < bins.size() ? number(bins[i].loss, 4) : "");
      if (i >= bins.size()) continue;
      const auto& [begin, end, loss] = bins[i];
      longest[begin] = std::max(longest[begin], end);
      rows[i][0] = std::to_string(begin) + (longest[begin] - begin > 1 ? " to " + std::to_string(longest[begin] - 1) : "");
    }
  }
  return "\nloss (nats) by position\n" + table(header, rows);
}

EvaluationProgress progress_of(Progress& bar) {
  return {[](const std::string& line) { say(line); }, [&](double fraction, const std::string& domain) { bar.update(fraction, domain); }};
}

/// With all that the domains say for themselves.
nlohmann::json described(const std::string& run, const RunEvaluation& e) {
  nlohmann::json json{{"run", run},
                      {"step", e.step},
                      {"corpus", e.corpus},
                      {"corpus_hash", e.corpus_hash},
                      {"split", to_string(e.split)},
                      {"sequence_length", e.length},
                      {"packing", e.packing == Packing::document ? "document" : "packed"},
                      {"device", to_string(e.device)},
                      {"precision", e.precision},
                      {"losses", nlohmann::json::array()}};
  for (const DomainEvaluation& d : e.domains)
    json["losses"].push_back({{"domain", d.domain},
                              {"ood", d.ood},
                              {"loss", d.result.loss},
                              {"standard_error", d.result.standard_error},
                              {"bits_per_byte", d.result.bits_per_byte},
                              {"accuracy", d.result.accuracy},
                              {"sequences", d.sequences},
                              {"tokens", d.tokens},
                              {"by_position", d.result.by_position}});
  return json;
}

std::string heading(const std::string& run, const RunEvaluation& e) {
  return run + " at step " + std::to_string(e.step) + ", " + to_string(e.split) + " text of " + e.corpus + ", sequences of " +
         std::to_string(e.length) + " tokens" + (e.packing == Packing::document ? ", one document each" : "") + "\n";
}

/// Which reading a loss is of, where that makes a difference.
void describe_reading(const std::string& run, const std::string& reading, nlohmann::json& json, std::string& text) {
  const std::string why = looks_ahead(Run(run).info().config);
  if (why.empty() && reading == "one_pass") return;
  json["reading"] = reading;
  if (!why.empty()) json["looks_ahead"] = why;
  text += (reading == "one_pass" ? "read in one pass" : "read in one pass, and token by token as generation reads") +
          std::string(why.empty() ? "" : ": " + why) + "\n";
}

std::string readings_table(const BothReadings& both) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < both.stepwise.size(); ++i) {
    const StepwiseEvaluation& d = both.stepwise[i];
    rows.push_back({both.one_pass.domains[i].domain, number(both.one_pass.domains[i].result.loss, 4), number(d.loss, 4),
                    number(d.standard_error, 4), number(d.price, 4), number(d.price_error, 4)});
  }
  return "\nthe price of looking ahead: what token by token loses more than in one pass\n" +
         table({"domain", "one pass (nats)", "stepwise", "± standard error", "price", "± standard error"}, rows);
}

std::string loss_table(const RunEvaluation& e) {
  std::vector<std::vector<std::string>> rows;
  for (const DomainEvaluation& d : e.domains)
    rows.push_back({d.domain, d.ood ? "OOD" : "training domain", number(d.result.loss, 4), number(d.result.standard_error, 4),
                    number(std::exp(d.result.loss), 2),
                    std::isnan(d.result.accuracy) ? number(d.result.bits_per_byte, 4) : number(100 * d.result.accuracy, 2),
                    std::to_string(d.sequences), std::to_string(d.tokens)});
  const bool answers =
      std::any_of(e.domains.begin(), e.domains.end(), [](const DomainEvaluation& d) { return !std::isnan(d.result.accuracy); });
  return table({"domain", "kind", "loss (nats)", "± standard error", "perplexity", answers ? "right (%)" : "bits per byte", "sequences",
                answers ? "answers" : "tokens"},
               rows);
}

/// Losses of each run, and what each differs from the first one by on the same sequences.
int run_pairs(const Options& options) {
  Progress bar("evaluate");
  const PairedEvaluation paired =
      evaluate_pairs({options.runs.begin(), options.runs.end()}, options.evaluation, options.paired_error, progress_of(bar));
  nlohmann::json json{{"runs", nlohmann::json::array()},
                      {"differences", nlohmann::json::array()},
                      {"tokens", paired.tokens},
                      {"whole_split", paired.whole_split},
                      {"paired_error", options.paired_error}};
  std::string text;
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < paired.runs.size(); ++i) {
    const RunEvaluation& e = paired.runs[i];
    json["runs"].push_back(described(options.runs[i], e));
    text += heading(options.runs[i], e) + loss_table(e) + (options.by_position ? position_table(e) : "") + "\n";
    for (const bool ood : {false, true}) {
      if (i == 0) continue;
      const LossAndError d = paired_difference(paired.losses[i], paired.losses.front(), ood);
      if (std::isnan(d.loss)) continue;
      const std::string kind = ood ? "OOD" : "training domains";
      json["differences"].push_back(
          {{"run", options.runs[i]}, {"to", options.runs.front()}, {"ood", ood}, {"difference", d.loss}, {"standard_error", d.error}});
      rows.push_back({options.runs[i], kind, number(d.loss, 4), number(d.error, 4),
                      d.error <= options.paired_error ? "" : "above " + number(options.paired_error, 4) + " on the whole split"});
    }
  }
  text += "differences to " + options.runs.front() + " on the same sequences, " + std::to_string(paired.tokens) + " tokens of a domain" +
          (paired.whole_split ? " (the whole split)" : "") + "\n" +
          table({"run", "mean over", "difference (nats)", "± standard error", ""}, rows);
  print_result(json, text);
  return 0;
}

int run_one(const Options& options) {
  Progress bar("evaluate");
  const std::string& run = options.runs.front();
  const bool stepwise = options.reading == "stepwise";
  BothReadings both;
  if (stepwise)
    both = evaluate_readings(run, options.evaluation, progress_of(bar));
  else
    both.one_pass = evaluate_run(run, options.evaluation, progress_of(bar));
  nlohmann::json json = described(run, both.one_pass);
  std::string text = heading(run, both.one_pass);
  describe_reading(run, options.reading, json, text);
  for (size_t i = 0; i < both.stepwise.size(); ++i)
    json["losses"][i]["stepwise"] = {{"loss", both.stepwise[i].loss},
                                     {"standard_error", both.stepwise[i].standard_error},
                                     {"price_of_looking_ahead", both.stepwise[i].price},
                                     {"price_standard_error", both.stepwise[i].price_error}};
  text += loss_table(both.one_pass) + (stepwise ? readings_table(both) : "") + (options.by_position ? position_table(both.one_pass) : "");
  print_result(json, text);
  return 0;
}

int run(Options options) {
  for (const std::string& directory : options.runs) require_checkpoint(directory, options.evaluation.checkpoint);
  options.evaluation.split = options.split == "test" ? Split::test : Split::validation;
  const bool stepwise = options.reading == "stepwise";
  if (stepwise && options.tasks.tasks.empty() && options.tasks.lengths.empty() && options.runs.size() > 1)
    throw UsageError("--reading stepwise evaluates one RUN at a time; with --lengths it takes several");
  if (!options.tasks.tasks.empty()) {
    if (options.runs.size() > 1) throw UsageError("--task scores one RUN at a time");
    options.tasks.run = options.runs.front();
    options.tasks.options.checkpoint = options.evaluation.checkpoint;
    options.tasks.options.device = options.evaluation.device;
    options.tasks.domains = options.evaluation.domains;
    options.tasks.options.reading = options.reading;
    return evaluate_tasks(options.tasks);
  }
  if (!options.tasks.lengths.empty())
    return evaluate_over_lengths(options.runs, options.evaluation, {options.tasks.lengths, options.min_tokens, stepwise});
  if (options.min_tokens > 0) throw UsageError("--min-tokens goes with --lengths");
  if (options.runs.size() > 1) return run_pairs(options);
  return run_one(options);
}

void declare_tasks(CLI::App& app, TaskCommand& o) {
  CLI::Option* task = app.add_option("--task", o.tasks,
                                     "Score tasks instead, names with commas between (saccade tasks lists them) or a JSON file; "
                                     "results stay in RUN/tasks")
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
  app.add_option("--prefix", o.prefix,
                 "Before every item: none, begin (the tokenizer's begin-of-text, where it has one, else end-of-text) or end_of_text")
      ->check(CLI::IsMember({"none", "begin", "end_of_text"}))
      ->needs(task)
      ->capture_default_str();
  app.add_option("--lengths", o.lengths,
                 "Of text: losses of the same documents read to each of these lengths, like 512,1024,2048, kept in RUN/evaluations; with "
                 "--task of generated prompts (s-niah-1, passkey; default: the usual ones)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--samples", o.options.samples, "Of generated tasks on symbols: examples of each of --domains")
      ->check(CLI::Range(2, 1'000'000'000))
      ->needs(task)
      ->capture_default_str();
  app.add_option("--seed", o.options.items.seed, "Of generated prompts")
      ->check(CLI::Range(0, 1'000'000'000))
      ->needs(task)
      ->capture_default_str();
  app.add_option("--adjectives", o.options.items.adjectives,
                 "Of S-NIAH: a file of words, one a line, that keys begin with (default: adjectives.txt, which ships)")
      ->needs(task);
  app.add_option("--nouns", o.options.items.nouns, "Of S-NIAH: words that keys end with (default: nouns.txt, which ships)")->needs(task);
  app.add_option("--batch", o.options.batch, "Of generation: answers that are written side by side; changes none of them")
      ->check(CLI::Range(1, 4096))
      ->needs(task);
  app.add_flag("!--whole-choices", o.options.shared_contexts,
               "Of choices: read the context again for every choice, to compare times; scores change by rounding alone")
      ->needs(task);
  app.add_flag("--greedy", o.options.greedy, "Of choices: also how often greedy decoding writes the right one")->needs(task);
  app.add_flag("!--no-trim", o.options.items.trim,
               "White space around prompts and targets of SWDE, SQuAD and FDA stays, as in arXiv:2505.18522")
      ->needs(task);
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
           "what the run was evaluated on while it trained. Only the weights are loaded, and no training text. Several runs are evaluated "
           "on "
           "the same sequences, as many as their differences need.");
       app.add_option("RUN", o->runs, "Run directories; of several the differences to the first are told, too")->required();
       app.add_option("--checkpoint,--step", o->evaluation.checkpoint,
                      "Step of the checkpoint (default: the newest; no other takes its place when it is damaged)")
           ->check(CLI::Range(1, 1'000'000'000));
       app.add_option("--split", o->split, "validation or test")->check(CLI::IsMember({"validation", "test"}))->capture_default_str();
       app.add_option("--corpus", o->evaluation.corpus, "Another corpus (default: the run's)");
       app.add_option("--domains", o->evaluation.domains,
                      "Domains, with commas between (default: the run's; all of another corpus that have text in the split); with --task "
                      "difficulties of a generated task, like length-64-pairs-4")
           ->delimiter(',')
           ->allow_extra_args(false);
       app.add_option("--length", o->evaluation.length, "Tokens in a sequence (default: the run's)")->check(CLI::Range(1, 1 << 20));
       app.add_option("--min-tokens", o->min_tokens, "With --lengths: of documents with so many tokens (default: the greatest length)")
           ->check(CLI::Range(1, 1 << 24));
       app.add_option("--packing", o->evaluation.packing,
                      "packed: text across documents; document: the beginning of one document a sequence (default: the run's)")
           ->check(CLI::IsMember({"packed", "document"}));
       app.add_option("--tokens", o->evaluation.tokens,
                      "Tokens of every domain, in whole sequences, as far as there is text (default: as while training)")
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
       app.add_option("--paired-error", o->paired_error,
                      "Of several runs: tokens are doubled until the standard error of each difference on the same sequences is at most so "
                      "many nats, or the split ends")
           ->check(CLI::PositiveNumber)
           ->capture_default_str();
       app.add_flag("--by-position", o->by_position, "Also the mean loss over positions 0, 1, 2 to 3, 4 to 7 and so on in a sequence");
       app.add_option("--reading", o->reading,
                      "one_pass: a forward over each sequence, as while training; stepwise: also token by token as generation reads, which "
                      "loses more where a model looks ahead (Avey), with the difference, also at each of --lengths")
           ->check(CLI::IsMember({"one_pass", "stepwise"}))
           ->capture_default_str();
       app.add_option("--device", o->evaluation.device, "cpu, cuda:N or auto (default: the run's)");
       declare_tasks(app, o->tasks);
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli

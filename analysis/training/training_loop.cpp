#include "analysis/training/training_loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "analysis/runs/files.h"
#include "analysis/runs/history.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/training/branches.h"
#include "analysis/training/divergence.h"
#include "analysis/training/observe.h"
#include "models/corpus/sha256.h"
#include "models/corpus/vocabulary.h"
#include "models/evaluation/split_evaluation.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

Position position_of(const StepRecord& step) { return {step.step, step.tokens, step.flops, step.seconds}; }

std::string describe(const StepRecord& step, const EvaluationRecord& evaluation) {
  std::ostringstream line;
  line.precision(4);
  line << std::fixed << "step " << step.step << ":";
  if (step.step > 0) line << " training loss " << step.loss;
  std::string between = step.step > 0 ? ", " : " ";
  for (const DomainLoss& loss : evaluation.losses)
    line << std::exchange(between, ", ") << loss.domain << (loss.ood ? " (OOD) " : " ") << loss.loss
         << (std::isnan(loss.accuracy) ? "" : " (" + std::to_string(std::lround(1000 * loss.accuracy)) + " ‰ right)");
  return line.str();
}

}  // namespace

namespace {

/// The generated task's, made of the hashes of its domains.
Corpus task_corpus(const DataConfig& data) {
  std::string all;
  for (const std::string& name : data.train) all += SymbolDomain(symbol_task(data.task), name, "/data/train").hash() + "\n";
  return Corpus::generated(data.task, hex(sha256(all)));
}

Corpus open_corpus(const DataConfig& data, const std::function<void(const std::string&)>& tell) {
  if (!data.task.empty()) return task_corpus(data);
  Corpus corpus = Corpus::open(data.corpus, tell);
  for (const auto* domains : {&data.train, &data.ood})
    for (const std::string& domain : *domains)
      if (!corpus.has_domain(domain)) {
        std::string known;
        for (const DomainInfo& d : corpus.domains()) known += (known.empty() ? "" : ", ") + d.name;
        throw UsageError("/data: corpus " + corpus.name() + " has no domain \"" + domain + "\"; it has " + known);
      }
  return corpus;
}

}  // namespace

TrainingInput prepare_training(const RunConfig& config, const RunProgress& progress, const Ranks& ranks,
                               std::unique_ptr<Tokenizer> tokenizer) {
  const auto tell = [&](const std::string& line) {
    if (progress.message) progress.message(line);
  };
  std::map<std::string, double> spent;
  double mark = now();
  const auto lap = [&](const char* what) { spent[what] += now() - std::exchange(mark, now()); };
  require_divisible(config.training, ranks.count);
  require_precision(config, ranks);  // before text is gathered for nothing
  Corpus corpus = open_corpus(config.data, tell);
  if (!tokenizer) tokenizer = open_tokenizer(config.data.tokenizer, corpus, config.data.train, tell);
  lap("corpus and tokenizer");
  Plan plan = make_plan(config, padded_vocabulary(tokenizer->vocabulary(), config.data.vocabulary_multiple), ranks);
  require_device(config, plan);
  lap("plan");
  std::vector<std::shared_ptr<const SequenceStore>> stores;
  std::vector<int64_t> domain_tokens;
  const DocumentFilter filter{config.data.min_document_tokens, config.data.max_document_tokens};
  const int64_t length = config.data.sequence_length;
  for (const std::string& domain : config.data.train) {
    if (!config.data.task.empty()) {
      stores.push_back(symbol_sequences({symbol_task(config.data.task), domain, "/data/train"}, Split::train, length));
      continue;
    }
    const auto store = TokenStore::open(corpus, domain, Split::train, *tokenizer, tell, filter);
    domain_tokens.push_back(store->size());
    stores.push_back(text_sequences(store, length, parse_packing(config.data.packing)));
  }
  auto evaluation = evaluation_batches(config, corpus, *tokenizer);
  lap("text");
  TrainingInput input{.config = config,
                      .corpus = std::move(corpus),
                      .tokenizer = std::move(tokenizer),
                      .plan = std::move(plan),
                      .evaluation = std::move(evaluation),
                      .ranks = ranks,
                      .trainer = {},
                      .stores = std::move(stores),
                      .domain_tokens = std::move(domain_tokens)};
  input.renew_trainer();
  lap("model");
  input.spent = std::move(spent);
  return input;
}

void TrainingInput::follow(const RunConfig& other) {
  config = other;
  trainer->follow(other.training);
}

void TrainingInput::renew_trainer() {
  trainer.reset();
  const auto seed = static_cast<uint64_t>(config.training.seed);
  auto data = std::make_unique<BatchSource>(config.data.sequence_length, stores, seed, true, config.data.weights);
  trainer = std::make_unique<Trainer>(config, plan, std::move(data), ranks);
}

void TrainingLoop::tell(const std::string& line) {
  const bool complete = writer_.log_problem().empty();
  writer_.log(line);
  if (complete && !writer_.log_problem().empty() && progress_.message) progress_.message(writer_.log_problem());
  if (progress_.message) progress_.message(line);
}

bool TrainingLoop::due(int64_t every, int64_t step) const { return (every > 0 && step % every == 0) || input_.trainer->finished(); }

void TrainingLoop::tell_written() {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(written_mutex_);
    lines.swap(written_);
  }
  for (const std::string& line : lines) tell(line);
  files_.check();
  captures_.check();
}

void TrainingLoop::wait_for_files() {
  timed("waiting for files", [&] { files_.wait(), captures_.wait(); });
  tell_written();
}

void TrainingLoop::write_checkpoint(const StepRecord& step) {
  wait_for_files();
  timed("checkpoints", [&] { begin_checkpoint(step); });
  if (!state_is_copied()) wait_for_files();
}

bool TrainingLoop::state_is_copied() const {
  const Trainer& trainer = *input_.trainer;
  return trainer.device().is_cuda() || trainer.state_bytes() <= kCopiedState;
}

void TrainingLoop::begin_checkpoint(const StepRecord& step) {
  writer_.sync();
  Trainer& trainer = *input_.trainer;
  const bool aside = state_is_copied();
  auto checkpoint = std::make_shared<Checkpoint>(Checkpoint{writer_.info().config, input_.corpus.hash(), input_.tokenizer->name(),
                                                            input_.tokenizer->hash(), input_.tokenizer->serialized(),
                                                            aside ? trainer.copied_state() : trainer.state(), input_.choices});
  const std::vector<int64_t> branches = branch_starts();
  if (aside && std::find(branches.begin(), branches.end(), step.step) != branches.end()) branch_start_ = checkpoint;
  files_.add([this, checkpoint, on_course = course_.on_course(), at = step.step] {
    if (on_course) keeper_.keep(at);
    writer_.require();
    std::string problem;
    timed_aside("checkpoints", [&] { problem = keeper_.write(*checkpoint); });
    const std::lock_guard lock(written_mutex_);
    if (!problem.empty()) written_.push_back(problem);
    written_.push_back("checkpoint at step " + std::to_string(at));
  });
}

void TrainingLoop::measure(const StepRecord& step, const Measured& have) {
  Trainer& trainer = *input_.trainer;
  const TrainingConfig& training = trainer.config().training;
  const Position at = position_of(step);
  bool measured = false;
  if (due(training.evaluate_every, step.step) && have.evaluation < step.step) {
    timed("evaluations", [&] { last_evaluation_ = evaluate_domains(trainer, input_.evaluation, at); });
    writer_.add(*last_evaluation_);
    if (trainer.data().weighted()) writer_.add(data_use(trainer, at));
    writer_.log(describe(step, *last_evaluation_));
    measured = true;
  }
  if (due(training.probe_every, step.step) && have.statistics < step.step) {
    if (trainer.device().is_cpu()) wait_for_files();
    timed("probes", [&] { writer_.add(probe_statistics(trainer, input_.evaluation.front(), at, input_.choices)); });
    measured = true;
  }
  if (measured) writer_.add(memory_use(trainer, at));
  if (due(training.capture_every > 0 ? training.capture_every : training.checkpoint_every, step.step) && !have.captures)
    timed("captures", [&] {
      captures_.add([this, at = step.step, captures = capture_samples(trainer, input_.evaluation, *input_.tokenizer, at)] {
        timed_aside("captures", [&] { writer_.add(at, captures()); });
      });
    });
}

std::vector<int64_t> TrainingLoop::branch_starts() const {
  std::vector<int64_t> steps = cooldown_steps_of(input_.config.training);
  for (const int64_t step : passed_losses(input_.config.training, validation_))
    if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
  return steps;
}

void TrainingLoop::begin_at_loss(const StepRecord& step, bool checkpoint) {
  if (!last_evaluation_ || last_evaluation_->at.step != step.step) return;
  double sum = 0, domains = 0;
  for (const DomainLoss& loss : last_evaluation_->losses)
    if (!loss.ood) sum += loss.loss, ++domains;
  if (validation_.step.empty() || validation_.step.back() < static_cast<double>(step.step))
    validation_.step.push_back(static_cast<double>(step.step)), validation_.value.push_back(sum / domains);
  const std::vector<int64_t> begun = passed_losses(input_.config.training, validation_);
  if (std::find(begun.begin(), begun.end(), step.step) == begun.end() || keeper_.keeps(step.step)) return;
  keeper_.keep_always(step.step);
  if (!checkpoint) write_checkpoint(step);
}

void TrainingLoop::observe(const StepRecord& step) {
  const bool checkpoint = due(input_.config.training.checkpoint_every, step.step) || keeper_.keeps(step.step);
  if (checkpoint) write_checkpoint(step);  // what is measured needs memory of its own: if that ends the run, this is kept
  measure(step, {});
  begin_at_loss(step, checkpoint);
  if (!checkpoint || input_.trainer->finished()) return;  // at the end they are written once, with the state
  timed("results", [&] {
    writer_.set_step(step.step);
    files_.add([this, info = writer_.info()] {
      writer_.require();
      timed_aside("results", [&] { write_results_file(info); });
    });
  });
}

void TrainingLoop::measure_what_is_missing(const StepRecord& step) {
  if (step.step == forked_step(writer_.info())) return;  // nothing is measured at the start of a run, which a fork's parent measured
  Measured have = measured_;
  have.captures = std::filesystem::exists(step_file(writer_.info().directory, kCaptures, step.step));
  if (have.statistics == step.step)  // recorded, but the checkpoint is from before; what is chosen now is what the next probe needs
    probe_statistics(*input_.trainer, input_.evaluation.front(), position_of(step), input_.choices);
  measure(step, have);
  if (input_.config.training.stop_at_accuracy > 0 && have.evaluation == step.step)  // recorded, and what the run may have ended at
    last_evaluation_ = evaluate_domains(*input_.trainer, input_.evaluation, position_of(step));
}

/// The initial weights, once: a run that has their checkpoint has seen them.
void TrainingLoop::observe_start(const StepRecord& start) {
  Trainer& trainer = *input_.trainer;
  if (!trainer.config().training.evaluate_at_start || start.step != 0 || keeper_.newest() == 0) return;
  const Position at{};
  last_evaluation_ = evaluate_domains(trainer, input_.evaluation, at);
  writer_.add(*last_evaluation_);
  writer_.log(describe(start, *last_evaluation_));
  writer_.add(probe_statistics(trainer, input_.evaluation.front(), at, input_.choices));
  writer_.add(memory_use(trainer, at));
  writer_.add(0, capture_samples(trainer, input_.evaluation, *input_.tokenizer, at)());
  write_checkpoint(start);
}

RunState TrainingLoop::end(RunState state, int64_t step, const std::string& message) {
  wait_for_files();
  writer_.set_state(state, step, message);
  timed("results", [&] { writer_.write_results(); });
  log_times("time", now() - began_, spent_);
  log_times("written meanwhile in", written_aside_);
  tell(std::string(to_string(state)) + " at step " + std::to_string(step) + (message.empty() ? "" : ": " + message));
  return state;
}

/// On more validation text than while training, where the config says so; by sequence, so that runs can be paired.
void TrainingLoop::evaluate_finally(const StepRecord& step) {
  const RunConfig& config = input_.config;
  const int64_t length = config.data.sequence_length;
  const int64_t sequences = final_evaluation_sequences(config, step.step - forked_step(writer_.info()));
  if (sequences == 0) return;
  tell("evaluating on " + std::to_string(sequences * length) + " tokens of every domain");
  const FrozenText text{Split::validation, length, sequences, parse_packing(config.data.packing)};
  RunEvaluation evaluation{.step = step.step,
                           .corpus = input_.corpus.name(),
                           .corpus_hash = input_.corpus.hash(),
                           .tokenizer_hash = input_.tokenizer->hash(),
                           .split = text.split,
                           .length = length,
                           .packing = text.packing,
                           .device = input_.trainer->device(),
                           .precision = input_.trainer->precision(),
                           .domains = {}};
  std::vector<FrozenBatch> batches;
  for (const auto* domains : {&config.data.train, &config.data.ood})
    for (const std::string& domain : *domains)
      batches.push_back(config.data.task.empty() ? frozen_batch(input_.corpus, domain, text, *input_.tokenizer)
                                                 : task_batch(config.data.task, domain, {text.split, 0, text.sequences}));
  std::vector<Evaluation> results = input_.trainer->evaluate(batches);
  for (size_t i = 0; i < batches.size(); ++i)
    evaluation.domains.push_back(domain_evaluation(config.data, batches[i], std::move(results[i])));
  files_.add([this, evaluation = std::move(evaluation)] {  // behind the checkpoint, which the disk may still be taking
    writer_.require();
    const std::filesystem::path folder = writer_.info().directory / kEvaluations;
    make_run_folder(folder);
    timed_aside("evaluations",
                [&] { write_sealed_json(folder / ("step-" + std::to_string(evaluation.step) + ".validation.json"), to_json(evaluation)); });
  });
}

void TrainingLoop::run_branches(int64_t first, const StepRecord& step) {
  std::vector<int64_t> open;
  for (const int64_t start : branch_starts())
    if (start >= first && start <= step.step && !branch_finished(writer_.info().directory, start)) open.push_back(start);
  const auto at_hand = std::exchange(branch_start_, nullptr);
  if (open.empty()) return;
  wait_for_files();
  const std::filesystem::path& directory = writer_.info().directory;
  const RunConfig trunk = input_.config;
  const ProbedChoices choices = input_.choices;
  for (const int64_t start : open) try {
      tell("cooldown branch from step " + std::to_string(start));
      const bool begins = input_.trainer && at_hand && start == step.step && !branch_begun(directory, start);
      if (!begins) input_.trainer.reset();
      const RunState state = branch_(start, begins ? at_hand.get() : nullptr);
      tell("cooldown branch from step " + std::to_string(start) + " " + to_string(state));
    } catch (const Error& error) {  // the trunk goes on; resuming it tries again
      tell("cooldown branch from step " + std::to_string(start) + " failed: " + error.what());
    }
  if (!input_.trainer) input_.renew_trainer();
  input_.follow(trunk);
  input_.choices = choices;
  input_.trainer->skip(skipped_positions(writer_.info()));
  input_.trainer->restore(at_hand ? at_hand->state : read_checkpoint(step_file(directory, kCheckpoints, step.step)).state);
}

bool TrainingLoop::solved(const StepRecord& step) const {
  const double wanted = input_.config.training.stop_at_accuracy;
  if (wanted == 0 || !last_evaluation_ || last_evaluation_->at.step != step.step || input_.trainer->finished()) return false;
  return std::all_of(last_evaluation_->losses.begin(), last_evaluation_->losses.end(),
                     [&](const DomainLoss& loss) { return loss.ood || loss.accuracy >= wanted; });
}

RunState TrainingLoop::end_solved(const StepRecord& step) {
  if (keeper_.newest() != step.step)
    write_checkpoint(step);
  else if (const std::string problem = keeper_.tidy(); !problem.empty())
    tell(problem);
  timed("final evaluation", [&] { evaluate_finally(step); });
  return end(RunState::finished, step.step, "stop_at_accuracy is reached");
}

/// What is found out beside is no reason to lose the state, so an error there is part of the message.
RunState TrainingLoop::end_diverged(const StepRecord& step) {
  std::string message = describe_divergence(step);
  writer_.require();
  try {
    const Divergence found = record_divergence(*input_.trainer, step, writer_.info().directory);
    message += ", " + found.where + "; the batch is in " + found.file.filename().string();
  } catch (const Error& error) {
    message += "; the batch could not be kept: " + std::string(error.what());
  }
  return end(RunState::diverged, step.step, message);
}

/// "time: 12.31 s, steps 11.20, evaluations 0.61, …": where a process's time went.
void TrainingLoop::log_times(const char* what, double seconds, const std::map<std::string, double>& spent) {
  std::ostringstream line;
  line.precision(3);
  line << std::fixed << what << ": " << seconds << " s";
  for (const auto& [name, part] : spent) line << ", " << name << " " << part;
  writer_.log(line.str());
}

void TrainingLoop::log_times(const char* what, const std::map<std::string, double>& spent) {
  double all = 0;
  for (const auto& [name, part] : spent) all += part;
  if (!spent.empty()) log_times(what, all, spent);
}

RunState TrainingLoop::run(const std::atomic<bool>& stop) {
  log_times("prepared in", std::exchange(input_.spent, {}));
  StepRecord step = input_.trainer->record();
  writer_.set_state(RunState::running, step.step);
  measure_what_is_missing(step);
  observe_start(step);
  run_branches(1, step);
  if (solved(step)) return end_solved(step);
  if (input_.trainer->finished())
    if (const std::string problem = keeper_.tidy(); !problem.empty()) tell(problem);
  for (int64_t taken = 0; !input_.trainer->finished();) {
    Trainer& trainer = *input_.trainer;
    if (stop || trainer.stop_asked()) {
      wait_for_files();
      if (keeper_.newest() != step.step) write_checkpoint(step);
      return end(RunState::stopped, step.step, "");
    }
    timed(taken == 0 ? "first step" : "steps", [&] { step = trainer.step(); });
    if (++taken == 2)
      trainer.prepare_copies();  // a GPU has chosen its algorithms, which are timed, and recorded its work: nothing is disturbed
    timed("journal", [&] { writer_.add(step); });
    tell_written();
    if (!describe_divergence(step).empty()) return end_diverged(step);
    course_.add(step.loss);
    observe(step);
    timed("branches", [&] { run_branches(step.step, step); });
    if (solved(step)) return end_solved(step);
    if (progress_.step) progress_.step(step, last_evaluation_ ? &*last_evaluation_ : nullptr);
  }
  timed("final evaluation", [&] { evaluate_finally(step); });
  return end(RunState::finished, step.step, "");
}

}  // namespace saccade

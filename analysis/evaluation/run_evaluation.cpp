#include "analysis/evaluation/run_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/comparison/number_text.h"
#include "analysis/evaluation/evaluation_input.h"
#include "analysis/evaluation/stepwise_evaluation.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

FrozenText text_of(const RunConfig& config, const RunEvaluationOptions& options) {
  FrozenText text{options.split, options.length > 0 ? options.length : config.data.sequence_length, 0,
                  parse_packing(options.packing.empty() ? config.data.packing : options.packing)};
  if (options.tokens > 0 && options.tokens < text.length)
    throw UsageError("--tokens is " + std::to_string(options.tokens) + "; expected at least one sequence of " +
                     std::to_string(text.length));
  text.sequences = options.tokens > 0 ? options.tokens / text.length : evaluation_sequences(config.training, text.length);
  return text;
}

}  // namespace

namespace {

/// `also` is told every batch with what one pass lost on it.
using Also = std::function<void(LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const Evaluation& one_pass)>;

/// `done`: sequences of all batches.
void tell_progress(const std::vector<FrozenBatch>& batches, int64_t done, const EvaluationProgress& progress) {
  if (!progress.done) return;
  int64_t all = 0;
  const std::string* domain = nullptr;  // of the last sequence done
  for (const FrozenBatch& batch : batches) {
    if (all < done) domain = &batch.domain;
    all += batch.sequences;
  }
  progress.done(static_cast<double>(done) / static_cast<double>(all), *domain);
}

RunEvaluation evaluate(const std::filesystem::path& directory, const RunEvaluationOptions& options, const EvaluationProgress& progress,
                       const Also& also) {
  LoadedModel loaded = load_model(directory, options.checkpoint, options.device);
  const RunConfig& config = loaded.config;
  InferenceModel& model = *loaded.model;
  const FrozenText text = text_of(config, options);
  require_evaluation_memory(loaded, text.length);
  const bool on_text = config.data.task.empty();
  if (!on_text && !options.corpus.empty())
    throw UsageError("--corpus: the run was trained on the task " + config.data.task + ", not on text");
  const Corpus corpus = on_text ? evaluation_corpus(loaded, options, progress) : Corpus::generated(config.data.task, loaded.corpus_hash);
  std::vector<FrozenBatch> batches;
  for (const std::string& domain : on_text || options.domains.empty() ? evaluation_domains(config, options, corpus) : options.domains)
    batches.push_back(on_text ? frozen_batch(corpus, domain, text, *loaded.tokenizer)
                              : task_batch(config.data.task, domain, {text.split, options.length, text.sequences}));

  use_threads(config.threads);
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(config.training));
  RunEvaluation evaluation{.step = loaded.step,
                           .corpus = corpus.name(),
                           .corpus_hash = corpus.hash(),
                           .tokenizer_hash = loaded.tokenizer->hash(),
                           .split = options.split,
                           .length = text.length,
                           .packing = text.packing,
                           .device = model.arena().device(),
                           .precision = to_string(model.activations()),
                           .domains = {}};
  std::vector<Evaluation> results = pass.evaluate(batches, [&](int64_t done) { tell_progress(batches, done, progress); });
  for (size_t i = 0; i < batches.size(); ++i) {
    if (also) also(loaded, pass, batches[i], results[i]);
    evaluation.domains.push_back(domain_evaluation(config.data, batches[i], std::move(results[i])));
  }
  return evaluation;
}

}  // namespace

RunEvaluation evaluate_run(const std::filesystem::path& directory, const RunEvaluationOptions& options,
                           const EvaluationProgress& progress) {
  return evaluate(directory, options, progress, {});
}

BothReadings evaluate_readings(const std::filesystem::path& directory, const RunEvaluationOptions& options,
                               const EvaluationProgress& progress) {
  BothReadings both;
  both.one_pass = evaluate(directory, options, progress,
                           [&](LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const Evaluation& one_pass) {
                             both.stepwise.push_back(stepwise_evaluation(loaded, pass, batch, one_pass, progress));
                           });
  return both;
}

SequenceLosses sequence_losses(const RunEvaluation& evaluation) { return parse_sequence_losses(to_json(evaluation), "the evaluation"); }

PairedEvaluation evaluate_pairs(const std::vector<std::filesystem::path>& directories, RunEvaluationOptions options, double error,
                                const EvaluationProgress& progress) {
  PairedEvaluation paired;
  for (;;) {
    paired.runs.clear(), paired.losses.clear();
    for (const auto& directory : directories) {
      paired.runs.push_back(evaluate_run(directory, options, progress));
      paired.losses.push_back(sequence_losses(paired.runs.back()));
    }
    for (const DomainEvaluation& d : paired.runs.front().domains) paired.tokens = std::max(paired.tokens, d.tokens);
    const auto is_whole = [&](const SequenceLosses& losses) { return is_whole_split(losses, options.tokens); };
    paired.whole_split = options.tokens > 0 && std::all_of(paired.losses.begin(), paired.losses.end(), is_whole);
    double largest = 0;
    for (size_t i = 1; i < paired.runs.size(); ++i)
      for (const bool ood : {false, true}) {
        const LossAndError d = paired_difference(paired.losses[i], paired.losses.front(), ood);
        if (std::isnan(d.loss)) continue;
        largest = std::max(largest, std::isnan(d.error) ? std::numeric_limits<double>::infinity() : d.error);
      }
    if (paired.whole_split || largest <= error) return paired;
    options.tokens = tokens_for_error(std::max(options.tokens, paired.tokens), largest, error);
    if (progress.message)
      progress.message("the error of a difference is " + number_text("%.4f", largest) + " nats: evaluating on " +
                       std::to_string(options.tokens) + " tokens of every domain");
  }
}

}  // namespace saccade

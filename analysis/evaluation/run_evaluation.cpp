#include "analysis/evaluation/run_evaluation.h"

#include "analysis/training/training_run.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

Corpus corpus_of(const LoadedModel& loaded, const RunEvaluationOptions& options, const EvaluationProgress& progress) {
  Corpus corpus = Corpus::open(options.corpus.empty() ? loaded.config.data.corpus : options.corpus, progress.message);
  if (options.corpus.empty() && corpus.hash() != loaded.corpus_hash)
    throw DataError("corpus " + corpus.name() + " has changed since the run began (" + corpus.hash().substr(0, 12) + ", expected " +
                    loaded.corpus_hash.substr(0, 12) + "); name it with --corpus to evaluate on it as it is now");
  return corpus;
}

std::vector<std::string> domains_of(const RunConfig& config, const RunEvaluationOptions& options, const Corpus& corpus) {
  for (const std::string& domain : options.domains)
    if (!corpus.has_domain(domain)) throw UsageError("--domains: " + corpus.missing_domain(domain));
  if (!options.domains.empty()) return options.domains;
  std::vector<std::string> domains;
  if (corpus.name() == config.data.corpus) {
    domains = config.data.train;
    domains.insert(domains.end(), config.data.ood.begin(), config.data.ood.end());
    return domains;
  }
  for (const DomainInfo& info : corpus.domains())
    if (info.documents.contains(to_string(options.split))) domains.push_back(info.name);
  if (domains.empty()) throw DataError("corpus \"" + corpus.name() + "\" has no " + to_string(options.split) + " text");
  return domains;
}

FrozenText text_of(const RunConfig& config, const RunEvaluationOptions& options) {
  FrozenText text{options.split, options.length > 0 ? options.length : config.data.sequence_length, 0};
  if (options.tokens > 0 && options.tokens < text.length)
    throw UsageError("--tokens is " + std::to_string(options.tokens) + "; expected at least one sequence of " +
                     std::to_string(text.length));
  text.sequences = options.tokens > 0 ? options.tokens / text.length : evaluation_sequences(config.training, text.length);
  return text;
}

/// The weights lie there already.
void require_memory(LoadedModel& loaded, int64_t length) {
  const Device device = loaded.model->arena().device();
  const int64_t planned = planned_evaluation_bytes(loaded.config, loaded.tokenizer->vocabulary(), device.engine, length);
  const int64_t needed = planned - loaded.model->arena().used(), available = device_memory(device).available;
  if (needed > available)
    throw DeviceError("evaluating sequences of " + std::to_string(length) + " tokens needs " + std::to_string((needed >> 20) + 1) +
                      " MiB of memory on " + to_string(device) + ", " + std::to_string(available >> 20) +
                      " MiB are available; reduce --length or choose another --device");
}

}  // namespace

RunEvaluation evaluate_run(const std::filesystem::path& directory, const RunEvaluationOptions& options,
                           const EvaluationProgress& progress) {
  LoadedModel loaded = load_model(directory, options.checkpoint, options.device);
  const RunConfig& config = loaded.config;
  InferenceModel& model = *loaded.model;
  const FrozenText text = text_of(config, options);
  require_memory(loaded, text.length);
  const Corpus corpus = corpus_of(loaded, options, progress);
  std::vector<FrozenBatch> batches;
  for (const std::string& domain : domains_of(config, options, corpus))
    batches.push_back(frozen_batch(corpus, domain, text, *loaded.tokenizer));

  use_threads(config.threads);
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(config.training));
  RunEvaluation evaluation{
      loaded.step, corpus.name(), corpus.hash(), options.split, text.length, model.arena().device(), to_string(model.activations()), {}};
  const auto share = 1.0 / static_cast<double>(batches.size());
  for (const FrozenBatch& batch : batches) {
    const auto tell = [&, before = static_cast<double>(evaluation.domains.size())](int64_t done) {
      const double part = static_cast<double>(done) / static_cast<double>(batch.sequences);
      if (progress.done) progress.done(share * (before + part), batch.domain);
    };
    evaluation.domains.push_back(
        {batch.domain, is_ood(config.data, batch.domain), batch.sequences, batch.sequences * batch.length, pass.evaluate(batch, tell)});
  }
  return evaluation;
}

}  // namespace saccade

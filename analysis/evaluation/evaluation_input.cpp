#include "analysis/evaluation/evaluation_input.h"

#include "kernels/engine/error.h"
#include "models/training/plan.h"

namespace saccade {

Corpus evaluation_corpus(const LoadedModel& loaded, const RunEvaluationOptions& options, const EvaluationProgress& progress) {
  Corpus corpus = Corpus::open(options.corpus.empty() ? loaded.config.data.corpus : options.corpus, progress.message);
  if (options.corpus.empty() && corpus.hash() != loaded.corpus_hash)
    throw DataError("corpus " + corpus.name() + " has changed since the run began (" + corpus.hash().substr(0, 12) + ", expected " +
                    loaded.corpus_hash.substr(0, 12) + "); name it with --corpus to evaluate on it as it is now");
  return corpus;
}

std::vector<std::string> evaluation_domains(const RunConfig& config, const RunEvaluationOptions& options, const Corpus& corpus) {
  for (const std::string& domain : options.domains)
    if (!corpus.has_domain(domain)) throw UsageError("--domains: " + corpus.missing_domain(domain));
  if (!options.domains.empty()) return options.domains;
  std::vector<std::string> domains;
  if (corpus.name() == config.data.corpus || !config.data.task.empty()) {
    domains = config.data.train;
    domains.insert(domains.end(), config.data.ood.begin(), config.data.ood.end());
    return domains;
  }
  for (const DomainInfo& info : corpus.domains())
    if (info.documents.contains(to_string(options.split))) domains.push_back(info.name);
  if (domains.empty()) throw DataError("corpus \"" + corpus.name() + "\" has no " + to_string(options.split) + " text");
  return domains;
}

void require_evaluation_memory(LoadedModel& loaded, int64_t length) {
  const Device device = loaded.model->arena().device();
  const int64_t planned = planned_evaluation_bytes(loaded.config, loaded.rows(), device.engine, length);
  const int64_t needed = planned - loaded.model->arena().used(), available = device_memory(device).available;
  if (needed > available)
    throw DeviceError("evaluating sequences of " + std::to_string(length) + " tokens needs " + std::to_string((needed >> 20) + 1) +
                      " MiB of memory on " + to_string(device) + ", " + std::to_string(available >> 20) +
                      " MiB are available; reduce --length or choose another --device");
}

int64_t longest_read(const LoadedModel& loaded) {
  const int64_t trained = loaded.config.data.sequence_length;
  try {
    planned_evaluation_bytes(loaded.config, loaded.rows(), loaded.model->arena().device().engine, 2 * trained + 1);
    return 0;
  } catch (const UsageError&) {
    return trained;
  }
}

}  // namespace saccade

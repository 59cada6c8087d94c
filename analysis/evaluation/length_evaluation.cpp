#include "analysis/evaluation/length_evaluation.h"

#include <algorithm>
#include <numeric>

#include "analysis/comparison/look_ahead.h"
#include "analysis/evaluation/evaluation_input.h"
#include "analysis/evaluation/stepwise_evaluation.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"
#include "models/corpus/permutation.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

constexpr uint64_t kDocumentSeed = 20251;  // one for all runs: which documents are read depends on the text alone

std::vector<int64_t> checked_lengths(const LengthOptions& options, int64_t trained) {
  std::vector<int64_t> lengths = options.lengths;
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  const int64_t least = std::max<int64_t>(1, trained / 2);
  if (lengths.empty() || lengths.front() < least)
    throw UsageError("--lengths " + (lengths.empty() ? "names none" : "holds " + std::to_string(lengths.front())) +
                     "; expected lengths of at least half of the trained one, " + std::to_string(least) + " tokens");
  if (options.least_tokens > 0 && options.least_tokens < lengths.back())
    throw UsageError("--min-tokens is " + std::to_string(options.least_tokens) + "; expected at least the greatest of --lengths, " +
                     std::to_string(lengths.back()));
  return lengths;
}

/// A document a row: end-of-text and its first tokens. No row where no document has `least` tokens.
FrozenBatch long_documents(const TokenStore& store, const std::string& domain, int64_t length, int64_t least, int64_t most) {
  std::vector<int64_t> begins;
  int64_t begin = 0;
  for (const int64_t end : store.document_ends()) {
    if (end - begin - 1 >= least) begins.push_back(begin);
    begin = end;
  }
  FrozenBatch batch{domain, {}, {}, std::min(most, static_cast<int64_t>(begins.size())), length};
  if (begins.empty()) return batch;
  const Permutation order(begins.size(), kDocumentSeed, "long documents", 0);
  std::vector<int32_t> document(static_cast<size_t>(length));
  for (int64_t row = 0; row < batch.sequences; ++row) {
    store.read(begins[static_cast<size_t>(order(static_cast<uint64_t>(row)))], document);
    batch.tokens.push_back(store.end_of_text());
    batch.tokens.insert(batch.tokens.end(), document.begin(), document.end() - 1);
    batch.targets.insert(batch.targets.end(), document.begin(), document.end());
  }
  return batch;
}

/// [rows, length] nats: each row's targets begin … begin + length - 1, read from there on.
std::vector<double> losses_of(EvaluationPass& pass, const FrozenBatch& batch, int64_t begin, int64_t length,
                              const std::function<void()>& row_done) {
  std::vector<double> losses;
  const int64_t piece = pass.piece_sequences(length);
  for (int64_t first = 0; first < batch.sequences; first += piece) {
    const int64_t rows = std::min(piece, batch.sequences - first);
    std::vector<int32_t> tokens, targets;
    for (int64_t row = first; row < first + rows; ++row) {
      const int64_t at = row * batch.length + begin;
      tokens.insert(tokens.end(), batch.tokens.begin() + at, batch.tokens.begin() + at + length);
      targets.insert(targets.end(), batch.targets.begin() + at, batch.targets.begin() + at + length);
    }
    const TokenScores scores = pass.token_scores(tokens.data(), targets.data(), rows, length, false);
    losses.insert(losses.end(), scores.losses.begin(), scores.losses.begin() + rows * length);
    for (int64_t row = 0; row < rows; ++row) row_done();
  }
  return losses;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of each row of `length` losses the mean of the last `count`.
std::vector<double> means_of_last(const std::vector<double>& losses, int64_t length, int64_t count) {
  std::vector<double> means;
  for (auto end = losses.begin() + length;; end += length) {
    means.push_back(std::accumulate(end - count, end, 0.0) / static_cast<double>(count));
    if (end == losses.end()) return means;
  }
}

std::vector<PositionLoss> bins_of(const std::vector<double>& losses, int64_t length) {
  std::vector<double> by_position(static_cast<size_t>(length));
  const double share = static_cast<double>(length) / static_cast<double>(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) by_position[i % by_position.size()] += share * losses[i];
  return loss_by_position(by_position);
}

/// The rows' tokens begin … begin + length - 1 as a batch.
FrozenBatch window(const FrozenBatch& batch, int64_t begin, int64_t length) {
  FrozenBatch part{batch.domain, {}, {}, batch.sequences, length};
  for (int64_t row = 0; row < batch.sequences; ++row) {
    const int64_t at = row * batch.length + begin;
    part.tokens.insert(part.tokens.end(), batch.tokens.begin() + at, batch.tokens.begin() + at + length);
    part.targets.insert(part.targets.end(), batch.targets.begin() + at, batch.targets.begin() + at + length);
  }
  return part;
}

/// Loss and price of documents' means; the errors are those over the documents.
void take_readings(const std::vector<double>& stepwise, const std::vector<double>& one_pass, double& loss, double& error, double& price,
                   double& price_error) {
  std::vector<double> prices;
  for (size_t i = 0; i < stepwise.size(); ++i) prices.push_back(stepwise[i] - one_pass[i]);
  loss = mean(stepwise), error = standard_error(stepwise), price = mean(prices), price_error = standard_error(prices);
}

/// What decoding loses on the targets that `at` has of one pass.
LengthLosses::Stepwise stepwise_at(LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const LengthLosses::At& at,
                                   int64_t last, const EvaluationProgress& progress) {
  const auto losses_from = [&](int64_t begin) {
    return stepwise_losses(*loaded.model, window(batch, begin, at.length), pass.piece_sequences(at.length), [&](double fraction) {
      if (progress.done) progress.done(fraction, batch.domain + ", " + std::to_string(at.length) + " tokens, token by token");
    });
  };
  const std::vector<double> whole = losses_from(0), end = at.length == batch.length ? whole : losses_from(batch.length - at.length);
  LengthLosses::Stepwise s;
  take_readings(means_of_last(whole, at.length, at.length), at.by_document, s.loss, s.error, s.price, s.price_error);
  take_readings(means_of_last(end, at.length, last), at.last_by_document, s.last, s.last_error, s.last_price, s.last_price_error);
  return s;
}

LengthLosses::At at_length(EvaluationPass& pass, const FrozenBatch& batch, int64_t length, int64_t last,
                           const std::function<void()>& row_done) {
  LengthLosses::At at;
  at.length = length;
  const std::vector<double> whole = losses_of(pass, batch, 0, length, row_done);
  // The greatest length reads the last targets in the same pass.
  const std::vector<double> end = length == batch.length ? whole : losses_of(pass, batch, batch.length - length, length, row_done);
  at.by_position = bins_of(whole, length);
  at.by_document = means_of_last(whole, length, length), at.last_by_document = means_of_last(end, length, last);
  at.loss = mean(at.by_document), at.error = standard_error(at.by_document);
  at.last = mean(at.last_by_document), at.last_error = standard_error(at.last_by_document);
  return at;
}

void compare_with_shortest(std::vector<LengthLosses::At>& lengths) {
  for (LengthLosses::At& at : lengths) {
    std::vector<double> changes;
    for (size_t i = 0; i < at.last_by_document.size(); ++i) changes.push_back(at.last_by_document[i] - lengths.front().last_by_document[i]);
    at.change = mean(changes), at.change_error = standard_error(changes);
  }
}

/// Lengths up to what the model reads; the others go to `not_read`.
std::vector<int64_t> lengths_read(const std::vector<int64_t>& lengths, int64_t longest, std::vector<int64_t>& not_read) {
  std::vector<int64_t> read;
  for (const int64_t length : lengths) (longest > 0 && length > longest ? not_read : read).push_back(length);
  if (read.empty()) read.push_back(longest);
  return read;
}

int64_t documents_wanted(const RunConfig& config, const RunEvaluationOptions& options, int64_t length) {
  if (options.tokens == 0) return evaluation_sequences(config.training, length);
  if (options.tokens < length)
    throw UsageError("--tokens is " + std::to_string(options.tokens) + "; expected at least one document of the greatest length, " +
                     std::to_string(length));
  return options.tokens / length;
}

}  // namespace

LengthLosses evaluate_lengths(const std::filesystem::path& directory, const RunEvaluationOptions& options, const LengthOptions& wanted,
                              const EvaluationProgress& progress) {
  LoadedModel loaded = load_model(directory, options.checkpoint, options.device);
  const RunConfig& config = loaded.config;
  if (!config.data.task.empty())
    throw UsageError("--lengths: the run was trained on the task " + config.data.task + ", not on text; its domains have lengths");
  InferenceModel& model = *loaded.model;
  const int64_t trained = config.data.sequence_length;
  const std::vector<int64_t> asked = checked_lengths(wanted, trained);
  const Corpus corpus = evaluation_corpus(loaded, options, progress);
  LengthLosses losses;
  losses.step = loaded.step, losses.trained_length = trained, losses.greatest = asked.back();
  losses.least_tokens = std::max(wanted.least_tokens, asked.back());
  losses.looks_ahead = looks_ahead(nlohmann::json{{"architecture", config.architecture}});
  losses.corpus = corpus.name(), losses.corpus_hash = corpus.hash(), losses.tokenizer_hash = loaded.tokenizer->hash();
  losses.split = to_string(options.split), losses.device = to_string(model.arena().device());
  losses.precision = to_string(model.activations());
  const std::vector<int64_t> lengths = lengths_read(asked, longest_read(loaded), losses.not_read);
  require_evaluation_memory(loaded, lengths.back());
  const int64_t documents = documents_wanted(config, options, asked.back());

  use_threads(config.threads);
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(config.training));
  if (wanted.stepwise && !pass.decodes(lengths.back()))
    throw UsageError("--reading stepwise: the model does not decode sequences of " + std::to_string(lengths.back()) + " tokens");
  const std::vector<std::string> domains = evaluation_domains(config, options, corpus);
  for (size_t i = 0; i < domains.size(); ++i) {
    const auto store = TokenStore::open(corpus, domains[i], options.split, *loaded.tokenizer, progress.message);
    const FrozenBatch batch = long_documents(*store, domains[i], asked.back(), losses.least_tokens, documents);
    if (batch.sequences == 0) {
      losses.without_documents.push_back(domains[i]);
      continue;
    }
    LengthLosses::Domain& domain = losses.domains.emplace_back(LengthLosses::Domain{domains[i], is_ood(config.data, domains[i]), {}});
    int64_t rows = 0;
    const auto all = static_cast<double>(2 * batch.sequences * static_cast<int64_t>(lengths.size()));
    const auto row_done = [&] {
      if (progress.done)
        progress.done((static_cast<double>(i) + static_cast<double>(++rows) / all) / static_cast<double>(domains.size()), domains[i]);
    };
    const int64_t last = std::max<int64_t>(1, trained / 2);
    for (const int64_t length : lengths) domain.lengths.push_back(at_length(pass, batch, length, last, row_done));
    if (wanted.stepwise)
      for (LengthLosses::At& at : domain.lengths) at.stepwise = stepwise_at(loaded, pass, batch, at, last, progress);
    compare_with_shortest(domain.lengths);
  }
  if (losses.domains.empty())
    throw DataError("no " + losses.split + " document of corpus \"" + corpus.name() + "\" has " + std::to_string(losses.least_tokens) +
                    " tokens, which --lengths takes; expected shorter lengths or other text (--corpus)");
  make_run_folder(directory / kEvaluations);
  write_sealed_json(length_losses_file(directory, losses), to_json(losses));
  return losses;
}

}  // namespace saccade

#pragma once
#include <QTemporaryDir>
#include <cstring>
#include <memory>
#include <vector>

#include "models/architectures/registry.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/training/trainer.h"

namespace saccade::test {

/// A corpus of the small domains "lines" and "notes" in a folder that ends with the test.
class LinesCorpus {
 public:
  LinesCorpus() {
    qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8());
    qputenv("SACCADE_CACHE", (folder_.path() + "/cache").toUtf8());
    CorpusWriter writer("lines");
    std::string text;
    for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i) + " of a text that says the same again\n";
    writer.add("lines", Split::train, text);
    for (int i = 0; i < 60; ++i) writer.add("notes", Split::train, std::to_string(i) + std::string(static_cast<size_t>(i % 37), 'a'));
    writer.finish({}, Existing::refuse);
  }
  /// Of the domain that the config trains on: lines, one document, or notes, documents of 1 to 38 bytes.
  std::unique_ptr<BatchSource> source(const RunConfig& config) const {
    const Corpus corpus = Corpus::open("lines");
    return std::make_unique<BatchSource>(std::vector{TokenStore::open(corpus, config.data.train.front(), Split::train, *tokenizer_)},
                                         config.data.sequence_length, static_cast<uint64_t>(config.training.seed), true,
                                         std::vector<double>(), parse_packing(config.data.packing));
  }
  int64_t vocabulary() const { return tokenizer_->vocabulary(); }

 private:
  QTemporaryDir folder_;
  std::unique_ptr<Tokenizer> tokenizer_ = make_byte_tokenizer();
};

/// A run small enough for a test: two layers of width 16, 4 sequences of 24 tokens a step.
inline RunConfig small_run(const nlohmann::json& architecture, const nlohmann::json& training = {}, const std::string& precision = "f32",
                           const std::string& device = "cpu") {
  nlohmann::json a = {{"width", 16}, {"layers", 2}},
                 t = {{"steps", 40}, {"batch_tokens", 96}, {"warmup_steps", 2}, {"learning_rate", 0.01}};
  a.update(architecture);
  if (training.is_object()) t.update(training);
  return resolve_config({{"architecture", a},
                         {"data", {{"corpus", "lines"}, {"train", {"lines"}}, {"sequence_length", 24}}},
                         {"training", t},
                         {"device", device},
                         {"precision", precision}},
                        "test");
}

/// Bytes of all weights and moments, to compare runs bit by bit.
inline std::vector<char> bytes_of(const TrainingState& state) {
  std::vector<char> bytes;
  const auto add = [&](const std::vector<NamedTensor>& list) {
    for (const NamedTensor& t : list) {
      const char* data = static_cast<const char*>(t.tensor.raw());
      bytes.insert(bytes.end(), data, data + t.tensor.bytes());
    }
  };
  add(state.weights);
  for (const TensorGroup& group : state.optimizer) add(group.tensors);
  return bytes;
}

/// The state with tensors of its own, as a checkpoint holds it.
inline TrainingState copy_of(const TrainingState& state, Arena& arena) {
  TrainingState copy = state;
  const auto renew = [&](std::vector<NamedTensor>& list) {
    for (NamedTensor& t : list) {
      const Tensor original = t.tensor;
      t.tensor = arena.allocate(original.shape(), original.dtype());
      std::memcpy(t.tensor.raw(), original.raw(), static_cast<size_t>(original.bytes()));
    }
  };
  renew(copy.weights);
  for (TensorGroup& group : copy.optimizer) renew(group.tensors);
  return copy;
}

/// Frozen sequences with tokens 0 … vocabulary-1 in some order.
inline FrozenBatch frozen(int64_t sequences, int64_t length, int64_t vocabulary) {
  FrozenBatch batch{"lines", {}, {}, sequences, length};
  for (int64_t i = 0; i < sequences * length; ++i) {
    batch.tokens.push_back(static_cast<int32_t>((i * i + 7 * i) % vocabulary));
    batch.targets.push_back(static_cast<int32_t>((i * 5 + 3) % vocabulary));
  }
  return batch;
}

}  // namespace saccade::test

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/corpus/sha256.h"
#include "models/corpus/vocabulary.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kTrainingBytes = 12 << 20;  // more changes the pieces little, but takes minutes

/// Documents of several domains one by one, thinned by their hash to about kTrainingBytes.
std::vector<std::string> training_texts(const Corpus& corpus, const std::vector<std::string>& domains) {
  int64_t total = 0;
  for (const auto& info : corpus.domains())
    for (const auto& domain : domains)
      if (info.name == domain && info.bytes.contains("train")) total += info.bytes.at("train");
  const double share = static_cast<double>(kTrainingBytes) / static_cast<double>(std::max<int64_t>(total, 1));
  std::vector<std::string> texts;
  for (const auto& domain : domains)
    corpus.each_document(domain, Split::train, [&](std::string_view document) {
      stop_here_if_asked();
      if (share >= 1 || sha256(document)[31] < 256 * share) texts.emplace_back(document);
      return true;
    });
  return texts;
}

std::string train(const std::string& kind, int64_t vocabulary, const Corpus& corpus, const std::vector<std::string>& domains) {
  const std::vector<std::string> texts = training_texts(corpus, domains);
  size_t at = 0;
  return train_sentencepiece(kind, vocabulary, [&](std::string& text) {
    if (at == texts.size()) return false;
    text = texts[at++];
    return true;
  });
}

/// The cached file: the SHA-256 of the model in hexadecimal, a line end, the model.
std::string read_cached(const fs::path& path) {
  const std::string content = read_file(path);
  const std::string model = content.size() > 65 ? content.substr(65) : std::string();
  if (content.substr(0, 64) != hex(sha256(model)))
    throw DataError(path.string() + ": the tokenizer kept there is damaged; delete this file, it will be trained again");
  return model;
}

std::unique_ptr<Tokenizer> open_trained(const std::string& spec, const std::string& kind, int64_t vocabulary, const Corpus& corpus,
                                        const std::vector<std::string>& domains, const std::function<void(const std::string&)>& progress) {
  std::string names;
  for (const auto& domain : domains) names += domain + "\n";
  const std::string key = hex(sha256("tokenizer 1\n" + spec + "\n" + corpus.hash() + "\n" + names)).substr(0, 24);
  const fs::path path = cache_folder() / "tokenizers" / (kind + "-" + std::to_string(vocabulary) + "-" + key);
  remove_abandoned(path.parent_path());
  if (!fs::exists(path)) {
    if (progress) progress("training the tokenizer " + spec);
    const std::string model = train(kind, vocabulary, corpus, domains);
    write_file(path, hex(sha256(model)) + "\n" + model);
  }
  return parse_sentencepiece(read_cached(path), spec);
}

int64_t parse_vocabulary(const std::string& spec, const std::string& digits) {
  int64_t vocabulary = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), vocabulary);
  if (error != std::errc() || end != digits.data() + digits.size() || vocabulary < 1)
    throw UsageError("tokenizer \"" + spec + "\": after the colon stands the size of the vocabulary, as in bpe:4096");
  return vocabulary;
}

std::unique_ptr<Tokenizer> open_model(const std::string& spec) {
  if (fs::is_regular_file(spec)) return load_sentencepiece(spec);
  if (spec.ends_with(".model") || spec.find('/') != spec.npos) throw DataError("tokenizer " + spec + ": there is no such file");
  throw UsageError("tokenizer \"" + spec + "\", expected bytes, bpe:SIZE, unigram:SIZE or the path of a SentencePiece .model");
}

}  // namespace

std::unique_ptr<Tokenizer> make_built_in_tokenizer(const std::string& name) {
  constexpr std::string_view kSymbols = "symbols:";
  if (name == "bytes") return make_byte_tokenizer();
  if (name.starts_with(kSymbols)) return make_symbol_tokenizer(parse_vocabulary(name, name.substr(kSymbols.size())));
  return nullptr;
}

int64_t vocabulary_of(const std::string& spec) {
  if (const auto built_in = make_built_in_tokenizer(spec)) return built_in->vocabulary();
  for (const std::string kind : {"bpe:", "unigram:"})
    if (spec.starts_with(kind)) return parse_vocabulary(spec, spec.substr(kind.size()));
  return open_model(spec)->vocabulary();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& spec, const Corpus& corpus, const std::vector<std::string>& domains,
                                          const std::function<void(const std::string&)>& progress) {
  if (auto built_in = make_built_in_tokenizer(spec)) return built_in;
  for (const std::string kind : {"bpe", "unigram"})
    if (spec.starts_with(kind + ":"))
      return open_trained(spec, kind, parse_vocabulary(spec, spec.substr(kind.size() + 1)), corpus, domains, progress);
  return open_model(spec);
}

}  // namespace saccade

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/corpus.h"
#include "models/corpus/disk.h"
#include "models/corpus/piece_tokenizer.h"
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

constexpr size_t kLargestFile = 64 << 20;

std::string read_model(const fs::path& path) {
  if (!fs::is_regular_file(path)) throw DataError("tokenizer " + path.string() + ": there is no such file");
  std::error_code error;
  if (fs::file_size(path, error) > kLargestFile)
    throw DataError("tokenizer " + path.string() + ": more than " + std::to_string(kLargestFile >> 20) + " MiB");
  return read_file(path);
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer(const std::string& content, const std::string& name) {
  if (content.starts_with('{')) return parse_tokenizer_json(content, name);
  return is_rank_file(content) ? parse_rank_file(content, name) : parse_sentencepiece(content, name);
}

std::unique_ptr<Tokenizer> open_tokenizer_file(const std::string& spec) {
  const fs::path path(spec);
  if (!fs::is_regular_file(path) && !spec.ends_with(".model") && spec.find('/') == spec.npos)
    throw UsageError("tokenizer \"" + spec +
                     "\", expected bytes, bpe:SIZE, unigram:SIZE or the path of a SentencePiece .model, a tokenizer.json, a .tiktoken or a "
                     "vocab.json with merges.txt beside it");
  const std::string name = path.filename().string();
  if (name == "vocab.json")
    return parse_tokenizer_json(join_vocabulary_and_merges(read_model(path), read_model(path.parent_path() / "merges.txt"), spec), name);
  if (path.extension() == ".tiktoken") return parse_rank_file(read_model(path), name);
  if (path.extension() == ".json") return parse_tokenizer_json(read_model(path), name);
  return parse_tokenizer(read_model(path), name);
}

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
  return open_tokenizer_file(spec)->vocabulary();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& spec, const Corpus& corpus, const std::vector<std::string>& domains,
                                          const std::function<void(const std::string&)>& progress) {
  if (auto built_in = make_built_in_tokenizer(spec)) return built_in;
  for (const std::string kind : {"bpe", "unigram"})
    if (spec.starts_with(kind + ":"))
      return open_trained(spec, kind, parse_vocabulary(spec, spec.substr(kind.size() + 1)), corpus, domains, progress);
  return open_tokenizer_file(spec);
}

}  // namespace saccade

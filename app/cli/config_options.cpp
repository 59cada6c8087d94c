#include "app/cli/config_options.h"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "models/corpus/tokenizer.h"

namespace saccade::cli {

namespace {

int64_t read_count(const std::string& spec, const std::string& digits) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1)
    throw UsageError("tokenizer \"" + spec + "\": after the colon stands the size of the vocabulary, as in bpe:4096");
  return count;
}

}  // namespace

RunConfig ConfigOptions::load() const {
  if (path != "-") return load_config(path, overrides);
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  return parse_config(text, "standard input", overrides);
}

std::shared_ptr<ConfigOptions> add_config_options(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  app.add_option("CONFIG", options->path, "Config file (JSON), - for standard input")->required();
  app.add_option("--set", options->overrides, "Override a value: --set training.seed=2")->allow_extra_args(false);
  return options;
}

int64_t vocabulary_of(const RunConfig& config) {
  const std::string& spec = config.data.tokenizer;
  if (spec == "bytes") return make_byte_tokenizer()->vocabulary();
  if (const size_t colon = spec.find(':'); colon != std::string::npos && (spec.rfind("bpe:", 0) == 0 || spec.rfind("unigram:", 0) == 0))
    return read_count(spec, spec.substr(colon + 1));
  if (spec.find('/') == spec.npos && !spec.ends_with(".model"))
    throw UsageError("tokenizer \"" + spec + "\", expected bytes, bpe:SIZE, unigram:SIZE or the path of a SentencePiece .model");
  if (!std::filesystem::is_regular_file(spec)) throw DataError("tokenizer " + spec + ": there is no such file");
  return load_sentencepiece(spec)->vocabulary();
}

}  // namespace saccade::cli

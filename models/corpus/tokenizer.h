#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saccade {

/// Text to token numbers and back. Token numbers are 0 … vocabulary()-1; one of them ends every document.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary() const = 0;
  virtual int32_t end_of_text() const = 0;
  /// What texts begin with where they were trained to: "<s>", "<|begin_of_text|>"; else end-of-text. encode() never puts it there.
  virtual int32_t begin_of_text() const { return end_of_text(); }
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;   ///< without end-of-text
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;  ///< exact inverse where the tokenizer allows
  /// What one token shows to a person: its bytes as text (may be part of a character), "" for none, "⏹" for end of text.
  virtual std::string piece(int32_t token) const = 0;
  virtual std::string name() const = 0;  ///< "bytes", "bpe:4096", file name
  virtual std::string hash() const = 0;  ///< SHA-256 of everything that decides encode()
  /// The model file's content for tokenizers that have one (stored in the run), else empty.
  virtual std::string serialized() const { return {}; }
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();
/// "symbols:N": numbers 0 … N − 1, which generated tasks are made of (models/tasks), not text.
std::unique_ptr<Tokenizer> make_symbol_tokenizer(int64_t vocabulary);
/// Of those that have no file: "bytes" or "symbols:N". Nothing for another name. Throws UsageError for a bad N.
std::unique_ptr<Tokenizer> make_built_in_tokenizer(const std::string& name);
/// From a SentencePiece .model (trained here, Mixtral's, Llama's …). Throws DataError when it is not one.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);
std::unique_ptr<Tokenizer> parse_sentencepiece(const std::string& content, const std::string& name);
/// From what serialized() gave: a SentencePiece model, a tokenizer.json or a rank file of tiktoken. Throws DataError "NAME: …".
std::unique_ptr<Tokenizer> parse_tokenizer(const std::string& content, const std::string& name);
/// From a file: a SentencePiece .model, a tokenizer.json, a rank file NAME.tiktoken, or a vocab.json with merges.txt beside it. Throws
/// UsageError for a name that is no path, DataError for a file that is missing, larger than 64 MiB, damaged or not read in all its parts.
std::unique_ptr<Tokenizer> open_tokenizer_file(const std::string& path);
/// Trains BPE or unigram on texts delivered by `next` (false: no more). Deterministic.
std::string train_sentencepiece(const std::string& kind, int64_t vocabulary, const std::function<bool(std::string&)>& next);

}  // namespace saccade

#include "models/corpus/piece_tokenizer.h"

#include <mutex>

#include "models/corpus/utf8.h"

namespace saccade {
namespace {

struct Scratch {
  SplitPattern::Scratch match;
  PieceScratch pieces;
};

/// What encoding needs beside the tokenizer, one for each thread that encodes, kept for the next text.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

/// Up to the next valid character.
size_t invalid_prefix(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && utf8_character(text.substr(size)) == 0) ++size;
  return size;
}

class PieceTokenizer : public Tokenizer {
 public:
  explicit PieceTokenizer(PieceTokenizerParts parts) : p_(std::move(parts)) {}

  int64_t vocabulary() const override { return static_cast<int64_t>(p_.token_bytes.size()); }
  int32_t end_of_text() const override { return p_.end_of_text; }
  int32_t begin_of_text() const override { return p_.begin_of_text < 0 ? p_.end_of_text : p_.begin_of_text; }
  std::string name() const override { return p_.name; }
  std::string hash() const override { return p_.hash; }
  std::string serialized() const override { return p_.content; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size() / 3);
    auto scratch = pool_.take();
    for (bool at_beginning = true; !text.empty(); at_beginning = false) {
      const std::string_view valid = text.substr(0, valid_utf8(text));
      encode_valid(valid, at_beginning, *scratch, tokens);
      text.remove_prefix(valid.size());
      const std::string_view invalid = text.substr(0, invalid_prefix(text));
      if (!invalid.empty()) p_.model->encode(invalid, scratch->pieces, tokens);
      text.remove_prefix(invalid.size());
    }
    pool_.give_back(std::move(scratch));
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens)
      if (token >= 0 && token < vocabulary()) text += p_.token_bytes[static_cast<size_t>(token)];
    if (p_.adds_space && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

  std::string piece(int32_t token) const override {
    if (token == p_.end_of_text) return "⏹";
    return token >= 0 && token < vocabulary() ? p_.token_bytes[static_cast<size_t>(token)] : std::string();
  }

 private:
  void encode_valid(std::string_view text, bool at_beginning, Scratch& scratch, std::vector<int32_t>& tokens) const {
    p_.added.split(text, [&](std::string_view part, int32_t number) {
      if (number >= 0) return tokens.push_back(number);
      const bool first = at_beginning && part.data() == text.data();
      if (p_.normalizations.empty()) return encode_normalized(part, first, scratch, tokens);
      std::string normalized(part);
      for (const Normalization& normalize : p_.normalizations) normalized = normalize(normalized);
      encode_normalized(normalized, first, scratch, tokens);
    });
  }

  void encode_normalized(std::string_view text, bool at_beginning, Scratch& scratch, std::vector<int32_t>& tokens) const {
    p_.added_normalized.split(text, [&](std::string_view part, int32_t number) {
      if (number >= 0) return tokens.push_back(number);
      split_text(p_.steps.data(), p_.steps.data() + p_.steps.size(), part, at_beginning && part.data() == text.data(), scratch.match,
                 [&](std::string_view piece) { p_.model->encode(piece, scratch.pieces, tokens); });
    });
  }

  PieceTokenizerParts p_;
  mutable ScratchPool pool_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_piece_tokenizer(PieceTokenizerParts parts) { return std::make_unique<PieceTokenizer>(std::move(parts)); }

}  // namespace saccade

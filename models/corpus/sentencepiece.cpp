#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/disk.h"
#include "models/corpus/sentencepiece_model.h"
#include "models/corpus/sha256.h"
#include "models/corpus/tokenizer.h"
#include "models/corpus/utf8.h"

namespace saccade {
namespace {

constexpr std::string_view kSpace = "\u2581";  // SentencePiece writes a space as U+2581

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (size_t at = 0; at < piece.size();) {
    const bool space = piece.substr(at).starts_with(kSpace);
    text += space ? ' ' : piece[at];
    at += space ? kSpace.size() : 1;
  }
  return text;
}

/// decode(encode(text)) == text when the model changes nothing itself, as those trained here. What SentencePiece would lose
/// (U+2581, NUL, bytes that are no UTF-8) goes through the byte pieces, where the model has them.
class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string content, std::string name)
      : content_(std::move(content)), name_(std::move(name)), hash_(hex(sha256("sentencepiece\n" + content_))) {
    const std::vector<PieceEntry> entries = read_pieces(content_, name_);
    if (const auto status = processor_.LoadFromSerializedProto(content_); !status.ok())
      throw DataError(name_ + ": no usable SentencePiece model: " + status.message());
    end_of_text_ = processor_.eos_id();
    if (end_of_text_ < 0 || end_of_text_ >= static_cast<int32_t>(entries.size()))
      throw DataError(name_ + ": the model has no end-of-sentence piece, which must close every document");
    bytes_of_token(entries);
    adds_space_ = processor_.EncodeAsIds("a") != std::vector<int>{} && token_bytes_[processor_.EncodeAsIds("a").front()].starts_with(' ');
  }

  int64_t vocabulary() const override { return static_cast<int64_t>(token_bytes_.size()); }
  int32_t end_of_text() const override { return end_of_text_; }
  int32_t begin_of_text() const override { return processor_.bos_id() < 0 ? end_of_text_ : processor_.bos_id(); }
  std::string name() const override { return name_; }
  std::string hash() const override { return hash_; }
  std::string serialized() const override { return content_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    if (adds_space_ || !has_bytes_) {
      encode_plain(text, tokens);
      return tokens;
    }
    while (!text.empty()) {
      stop_here_if_asked();
      const size_t plain = plain_prefix(text);
      encode_plain(text.substr(0, plain), tokens);
      text.remove_prefix(plain);
      const size_t special = text.empty() ? 0 : std::max<size_t>(1, utf8_character(text));
      for (char c : text.substr(0, special)) tokens.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
      text.remove_prefix(special);
    }
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (int32_t token : tokens)
      if (token >= 0 && token < vocabulary()) text += token_bytes_[token];
    if (adds_space_ && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

  std::string piece(int32_t token) const override {
    if (token == end_of_text_) return "⏹";
    return token >= 0 && token < vocabulary() ? token_bytes_[token] : std::string();
  }

 private:
  void bytes_of_token(const std::vector<PieceEntry>& entries) {
    int found = 0;
    for (size_t id = 0; id < entries.size(); ++id) {
      const auto& [text, score, type] = entries[id];
      token_bytes_.push_back(type == PieceEntry::Type::control   ? std::string()
                             : type == PieceEntry::Type::unknown ? std::string("\uFFFD")
                                                                 : with_spaces(text));
      if (type != PieceEntry::Type::byte) continue;
      unsigned value = 0;
      if (std::sscanf(text.c_str(), "<0x%2X>", &value) != 1)
        throw DataError(name_ + ": byte piece \"" + text + "\", expected <0x00> to <0xFF>");
      token_bytes_.back() = std::string(1, static_cast<char>(value));
      byte_tokens_[value] = static_cast<int32_t>(id);
      ++found;
    }
    if (found != 0 && found != 256)
      throw DataError(name_ + ": the model has " + std::to_string(found) + " byte pieces, expected 256 or none");
    has_bytes_ = found == 256;
  }

  /// Up to the first thing that must go byte by byte.
  static size_t plain_prefix(std::string_view text) {
    const size_t valid = valid_utf8(text);
    return std::min({valid, text.find(kSpace), text.find('\0')});
  }

  void encode_plain(std::string_view text, std::vector<int32_t>& tokens) const {
    if (text.empty()) return;
    std::vector<int> ids;
    if (const auto status = processor_.Encode(text, &ids); !status.ok()) throw DataError(name_ + ": cannot encode: " + status.message());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }

  sentencepiece::SentencePieceProcessor processor_;
  std::string content_, name_, hash_;
  int32_t end_of_text_ = 0;
  std::vector<std::string> token_bytes_;
  std::array<int32_t, 256> byte_tokens_{};
  bool has_bytes_ = false;
  bool adds_space_ = false;  ///< before the first word, as Llama's model does
};

}  // namespace

std::unique_ptr<Tokenizer> parse_sentencepiece(const std::string& content, const std::string& name) {
  return std::make_unique<SentencePieceTokenizer>(content, name);
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  return parse_sentencepiece(read_file(path), std::filesystem::path(path).filename().string());
}

}  // namespace saccade

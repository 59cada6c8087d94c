#include "models/corpus/sha256.h"
#include "models/corpus/tokenizer.h"

namespace saccade {
namespace {

/// Token = byte; 256 ends a text.
class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 257; }
  int32_t end_of_text() const override { return 256; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens(text.size());
    for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (int32_t token : tokens)
      if (token >= 0 && token < 256) text += static_cast<char>(token);
    return text;
  }

  std::string piece(int32_t token) const override {
    if (token == end_of_text()) return "⏹";
    return token >= 0 && token < 256 ? std::string(1, static_cast<char>(token)) : std::string();
  }

  std::string name() const override { return "bytes"; }
  std::string hash() const override { return hex(sha256("saccade bytes 1")); }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace saccade

#include <charconv>

#include "kernels/engine/error.h"
#include "models/corpus/sha256.h"
#include "models/corpus/tokenizer.h"

namespace saccade {
namespace {

/// Token n is written "n", with spaces between; 0 stands behind the end of an example.
class SymbolTokenizer : public Tokenizer {
 public:
  explicit SymbolTokenizer(int64_t vocabulary) : vocabulary_(vocabulary) {}
  int64_t vocabulary() const override { return vocabulary_; }
  int32_t end_of_text() const override { return 0; }

  std::vector<int32_t> encode(std::string_view text) const override {
    constexpr std::string_view kBlanks = " \t\r\n";
    std::vector<int32_t> tokens;
    for (size_t at = text.find_first_not_of(kBlanks); at < text.size(); at = text.find_first_not_of(kBlanks, at)) {
      const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
      int32_t number = -1;
      const auto [read, error] = std::from_chars(text.data() + at, text.data() + end, number);
      if (error != std::errc() || read != text.data() + end || number < 0 || number >= vocabulary_)
        throw DataError("\"" + std::string(text.substr(at, std::min<size_t>(end - at, 20))) +
                        "\" is no symbol; expected numbers from 0 to " + std::to_string(vocabulary_ - 1));
      tokens.push_back(number);
      at = end;
    }
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += (text.empty() ? "" : " ") + std::to_string(token);
    return text;
  }
  std::string piece(int32_t token) const override { return std::to_string(token) + " "; }
  std::string name() const override { return "symbols:" + std::to_string(vocabulary_); }
  std::string hash() const override { return hex(sha256("saccade symbols 1 " + std::to_string(vocabulary_))); }

 private:
  int64_t vocabulary_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_symbol_tokenizer(int64_t vocabulary) { return std::make_unique<SymbolTokenizer>(vocabulary); }

}  // namespace saccade

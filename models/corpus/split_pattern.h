#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace saccade {

/// A regular expression that cuts text into pieces, run by PCRE2 with Unicode's properties.
class SplitPattern {
 public:
  /// What one thread needs for matching.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class SplitPattern;
    struct State;
    std::unique_ptr<State> state_;
  };

  /// Throws DataError, of one line, for what PCRE2 does not compile, what may match nothing, and what Oniguruma and the regex crate of
  /// Rust, by which Hugging Face's tokenizers and tiktoken cut, read in another way: \w, \b, ^, $, classes in classes and the like.
  explicit SplitPattern(const std::string& pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;

  /// Begin and end of the first match in valid UTF-8 from byte `from` on, nothing when there is none. Throws DataError where matching takes
  /// more than its share of steps or memory.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from, Scratch& scratch) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

/// A pattern that matches exactly this text.
std::string literal_pattern(std::string_view text);

/// How GPT-2 cuts text. Source: github.com/openai/gpt-2, src/encoder.py.
extern const char* const kGpt2Pattern;

}  // namespace saccade

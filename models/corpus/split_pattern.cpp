#define PCRE2_CODE_UNIT_WIDTH 8
#include "models/corpus/split_pattern.h"

#include <pcre2.h>

#include <cstring>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr size_t kLongestPattern = 4096;
constexpr uint32_t kMostSteps = 200'000'000;  // of one match: text in one piece takes few of them a byte
constexpr size_t kStack = 32 << 10, kLargestStack = 8 << 20;

/// Walks a pattern as Oniguruma reads it and writes it as PCRE2 does.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : rest_(pattern) {}

  std::string run() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        escape();
      } else if (in_class_) {
        inside();
      } else {
        outside();
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw DataError("its pattern has " + what + ", which regular expression libraries read in different ways");
  }

  void take(size_t size) {
    out_ += rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  void escape() {
    const char letter = rest_.size() > 1 ? rest_[1] : '\0';
    if (letter == 's' || letter == 'S') {  // PCRE2's own has U+180E, which is no white space since Unicode 6.3
      out_ += letter == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      rest_.remove_prefix(2);
    } else if (letter == 'p' || letter == 'P') {
      if (rest_.size() < 3 || rest_[2] != '{') refuse(std::string("\\") + letter + " without braces");
      take(std::min(rest_.find('}'), rest_.size() - 1) + 1);
    } else if ((letter && std::strchr("rntfd", letter)) || std::ispunct(static_cast<unsigned char>(letter))) {
      take(2);
    } else {
      refuse(std::string("\\") + (std::isalnum(static_cast<unsigned char>(letter)) ? std::string(1, letter) : "at its end"));
    }
    may_open_ = false;
  }

  void inside() {
    if (rest_[0] == '[') refuse("a class in a class");
    if (rest_.starts_with("&&") || rest_.starts_with("--") || rest_.starts_with("~~")) refuse("an operation on classes");
    if (rest_[0] == ']') {
      if (may_open_) refuse("an empty class");
      in_class_ = false;
    }
    may_open_ = may_open_ && rest_[0] == '^';
    take(1);
  }

  void outside() {
    if (rest_[0] == '^' || rest_[0] == '$') refuse(std::string(1, rest_[0]));
    if (rest_.starts_with("}+")) refuse("a possessive count");
    if (rest_.starts_with("(*")) refuse("(*");
    if (rest_.starts_with("(?")) {
      for (const char* known : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
        if (rest_.starts_with(known)) return take(std::strlen(known));
      refuse(std::string(rest_.substr(0, 3)));
    }
    in_class_ = may_open_ = rest_[0] == '[';
    take(1);
  }

  std::string_view rest_;
  std::string out_;
  bool in_class_ = false;
  bool may_open_ = false;  ///< at the beginning of a class, where ] would be a letter for some
};

std::string message(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::ispunct(static_cast<unsigned char>(c))) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

struct SplitPattern::Scratch::State {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kStack, kLargestStack, nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);

  State() {
    if (!context || !data) throw std::bad_alloc();
    pcre2_set_match_limit(context, kMostSteps);
    pcre2_set_heap_limit(context, kLargestStack >> 10);
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
  }
};

SplitPattern::Scratch::Scratch() : state_(std::make_unique<State>()) {}
SplitPattern::Scratch::~Scratch() = default;

struct SplitPattern::Code {
  pcre2_code* code = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

SplitPattern::SplitPattern(const std::string& pattern) : code_(std::make_unique<Code>()) {
  if (pattern.size() > kLongestPattern) throw DataError("its pattern has more than " + std::to_string(kLongestPattern) + " bytes");
  const std::string translated = Translation(pattern).run();
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  if (!code_->code) throw DataError("its pattern is none at byte " + std::to_string(at + 1) + ": " + message(error));
  uint32_t matches_nothing = 0;
  pcre2_pattern_info(code_->code, PCRE2_INFO_MATCHEMPTY, &matches_nothing);
  if (matches_nothing) throw DataError("its pattern may match nothing");
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // where that cannot be, pcre2_match interprets
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;

std::optional<std::pair<size_t, size_t>> SplitPattern::find(std::string_view text, size_t from, Scratch& scratch) const {
  Scratch::State& state = *scratch.state_;
  const int found =
      pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK, state.data, state.context);
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) throw DataError("cutting text by the tokenizer's pattern failed: " + message(found));
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(state.data);
  return std::pair(place[0], place[1]);
}

}  // namespace saccade

// A needle in a haystack, S-NIAH-1 to 3, by the rules of RULER's niah_single_1 to 3 (arXiv:2404.06654, section 3.1 and table 5): a number,
// or a UUID, for a key of two words stands somewhere in filler lines or in running text, and is asked for at the end. Draws are other ones
// than RULER's, of the same distribution. "s-niah-1-bytes" is the first of them to train on.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "models/corpus/byte_stream.h"
#include "models/resources.h"
#include "models/tasks/prompt_task.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

constexpr int64_t kAnswer = 128;       // tokens
constexpr int64_t kAsked = 1 + 7 + 1;  // bytes to train on: a blank, the number, a full stop
constexpr const char* kBefore =
    "A special magic number is hidden within the following text. Make sure to memorize it. I will quiz you about the number afterwards.\n";

enum class Kind { filler, text, uuid };

/// Sorted pairs "adjective-noun".
std::vector<std::string> keys_of(const PromptInput& input) {
  const auto words = [](const std::vector<std::string>& given, const char* file) {
    if (!given.empty()) return given;
    std::istringstream lines(read_all(resource_folder() / "tasks" / file, 1 << 20));
    std::vector<std::string> read;
    for (std::string word; lines >> word;) read.push_back(word);
    return read;
  };
  std::set<std::string> pairs;
  for (const std::string& adjective : words(input.adjectives, "adjectives.txt"))
    for (const std::string& noun : words(input.nouns, "nouns.txt")) pairs.insert(adjective + "-" + noun);
  return {pairs.begin(), pairs.end()};
}

/// Version 4 (RFC 9562, section 5.4).
std::string uuid(Draws& draws) {
  std::string text = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  for (char& c : text) {
    if (c == 'x') c = "0123456789abcdef"[draws.below(16)];
    if (c == 'y') c = "89ab"[draws.below(4)];
  }
  return text;
}

class Haystack {
 public:
  /// `room`: tokens of the answer.
  Haystack(Kind kind, const PromptInput& input, int64_t room)
      : kind_(kind), input_(input), length_(input.length), room_(room), keys_(keys_of(input)) {
    if (kind_ != Kind::filler) {
      std::istringstream text(input.haystack);
      for (std::string word; text >> word;) words_.push_back(word);
      if (words_.empty()) throw UsageError("a haystack of running text is empty");
    }
    int64_t low = 0, high = length_;  // the largest number of units that fits for the first sample
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      fits(make(draws(0), middle)) ? low = middle : high = middle - 1;
    }
    units_ = low;
  }

  Draws draws(int64_t index) const {
    return {input_.seed, "s-niah " + std::to_string(static_cast<int>(kind_)) + " " + std::to_string(length_) + " " + std::to_string(index)};
  }
  /// With as many lines, or words, as there is room for.
  PromptSample sample(const Draws& draws) const {
    int64_t units = units_;
    PromptSample made = make(draws, units);
    for (PromptSample more = make(draws, units + 1); fits(more); more = make(draws, units + 1)) made = std::move(more), ++units;
    while (!fits(made) && units > 0) made = make(draws, --units);
    if (units == 0) throw UsageError("a haystack of " + std::to_string(length_) + " tokens has no room beside question and answer");
    return made;
  }

 private:
  bool fits(const PromptSample& sample) const {
    return static_cast<int64_t>(input_.tokenizer.encode(sample.prompt).size()) + room_ <= length_;
  }

  /// With so many lines, or words.
  PromptSample make(Draws draws, int64_t units) const {
    const std::string key = keys_[static_cast<size_t>(draws.below(static_cast<int64_t>(keys_.size())))];
    PromptSample sample;
    sample.answer = kind_ == Kind::uuid ? uuid(draws) : std::to_string(draws.between(1000000, 9999999));
    const std::string what = kind_ == Kind::uuid ? "uuid" : "number";
    const std::string needle = "One of the special magic " + what + "s for " + key + " is: " + sample.answer + ".";
    const double place = draws.uniform();
    std::vector<std::string> parts =
        kind_ == Kind::filler ? std::vector<std::string>(static_cast<size_t>(units), kFiller) : sentences(units);
    const auto count = static_cast<double>(parts.size());
    size_t before = 0;
    if (kind_ == Kind::filler) {
      before = static_cast<size_t>(place * count);
    } else {
      const double depth = std::round(100.0 * std::floor(40 * place) / 39);
      before = static_cast<size_t>(count * depth / 100);
    }
    parts.insert(parts.begin() + static_cast<int64_t>(before), needle);
    std::string head = kBefore, context;
    if (kind_ == Kind::uuid) head = replaced_number(head);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) context += kind_ == Kind::filler ? '\n' : ' ';
      if (i == before) sample.needle = head.size() + context.size();
      context += parts[i];
    }
    const auto tenth = static_cast<int64_t>(10.0 * static_cast<double>(sample.needle - head.size()) / static_cast<double>(context.size()));
    sample.depth = std::to_string(10 * tenth) + "-" + std::to_string(10 * tenth + 10) + " %";
    sample.prompt = head + context + "\nWhat is the special magic " + what + " for " + key +
                    " mentioned in the provided text? The special magic " + what + " for " + key + " mentioned in the provided text is";
    sample.max_tokens = kAnswer;
    return sample;
  }

  /// The sentence in front says it twice.
  static std::string replaced_number(std::string text) {
    for (size_t at = text.find("number"); at != text.npos; at = text.find("number", at)) text.replace(at, 6, "uuid");
    return text;
  }

  /// Of the first words, from the text's start again when it is too short.
  std::vector<std::string> sentences(int64_t words) const {
    std::string text;
    for (int64_t i = 0; i < words; ++i) text += (i > 0 ? " " : "") + words_[static_cast<size_t>(i) % words_.size()];
    return split_sentences(text);
  }

  Kind kind_;
  const PromptInput input_;
  int64_t length_, room_;
  std::vector<std::string> keys_, words_;
  int64_t units_ = 0;
};

PromptTask task(const char* id, Kind kind) {
  return {id,
          kind != Kind::filler,
          {2048, 4096, 8192, 16384, 32768, 65536},
          500,
          [kind](const PromptInput& input) -> MakePrompt {
            const auto haystack = std::make_shared<const Haystack>(kind, input, kAnswer);
            return [haystack](int64_t index) { return haystack->sample(haystack->draws(index)); };
          },
          true};
}

const RegisterPromptTask first{task("s-niah-1", Kind::filler)};
const RegisterPromptTask second{task("s-niah-2", Kind::text)};
const RegisterPromptTask third{task("s-niah-3", Kind::uuid)};

struct Settings {
  int64_t length = 1024;
};
const Schema<Settings> schema{
    field("length", &Settings::length, {512, 1 << 20}, "Most bytes of prompt and answer."),
};

/// Of bytes; made once for a length.
const Haystack& haystack_of(int64_t length) {
  static const auto bytes = make_byte_tokenizer();
  static std::map<int64_t, Haystack> made;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto found = made.find(length);
  if (found != made.end()) return found->second;
  return made.try_emplace(length, Kind::filler, PromptInput{length, 0, *bytes, {}, {}, {}}, kAsked).first->second;
}

/// The bytes before and behind the number are always the same; its first digit is one of nine, the other six are of ten.
constexpr double kGuessed = (1 + 1.0 / 9 + 6.0 / 10 + 1) / kAsked;

MakeExample maker(const Settings& s, uint64_t) {
  return [length = s.length](Draws& draws, bool) { return example_of(haystack_of(length).sample(draws)); };
}

const RegisterSymbolTask trained{SymbolTaskOf<Settings>{.id = "s-niah-1-bytes",
                                                        .title = "S-NIAH-1 to train on: a number for a key somewhere in lines of filler",
                                                        .paper = "arXiv:2404.06654, section 3.1",
                                                        .schema = schema,
                                                        .train = {"length-1024"},
                                                        .test = {"length-2048", "length-4096", "length-8192"},
                                                        .vocabulary = [](const Settings&) { return 256; },
                                                        .most_targets = [](const Settings&) { return kAsked; },
                                                        .chance = [](const Settings&) { return kGuessed; },
                                                        .maker = maker,
                                                        .tokenizer = "bytes"}
                                     .task()};

}  // namespace
}  // namespace saccade

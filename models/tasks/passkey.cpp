// The passkey map of arXiv:2506.11305 (figure 1): a number of up to five digits at nine depths of filler, 3.75 characters to a token of the
// nominal length, five samples of each. "passkey-bytes" is the same to train on, at any length.
#include "models/tasks/prompt_task.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

constexpr int64_t kDepths = 9, kRepeats = 5;

/// The filler again and again with blanks between, cut to so many characters.
std::string filler(int64_t characters) {
  std::string text;
  while (static_cast<int64_t>(text.size()) < characters) text += (text.empty() ? "" : " ") + kFiller;
  return text.substr(0, static_cast<size_t>(characters));
}

/// In so many characters of filler.
PromptSample passkey(Draws& draws, int64_t depth, int64_t all) {
  const int64_t before = depth * (all / 10);
  PromptSample sample;
  sample.answer = std::to_string(draws.between(1, 49999));
  sample.depth = std::to_string(10 * depth) + " %";
  sample.prompt = "\n" + filler(before) + "\n";
  sample.needle = sample.prompt.size();
  sample.prompt += "The pass key is " + sample.answer + "\n" + filler(all - before) + "\nThe pass key is";
  return sample;
}

/// As many as the number has, and one more for the blank before it where that is a token of its own.
int64_t tokens_to_say(const std::string& number, const Tokenizer& tokenizer) {
  std::vector<int32_t> blank = tokenizer.encode(" ");
  const std::vector<int32_t> digits = tokenizer.encode(number), both = tokenizer.encode(" " + number);
  blank.insert(blank.end(), digits.begin(), digits.end());
  return static_cast<int64_t>(both == blank ? both.size() : digits.size());
}

PromptSample make(int64_t length, uint64_t seed, const Tokenizer& tokenizer, int64_t index) {
  Draws draws(seed, "passkey " + std::to_string(length) + " " + std::to_string(index));
  PromptSample sample = passkey(draws, index / kRepeats % kDepths + 1, length * 15 / 4 / 1000 * 1000);
  sample.max_tokens = tokens_to_say(sample.answer, tokenizer);
  return sample;
}

struct Settings {
  int64_t length = 1024;
};
const Schema<Settings> schema{
    field("length", &Settings::length, {64, 1 << 20}, "Most bytes of prompt and answer."),
};
constexpr int64_t kDigits = 5, kBesides = 1 + 1 + 16 + kDigits + 1 + 16 + kDigits + 1;  // bytes of an example that are no filler

/// Of a number of five digits, as four of five are: the bytes before and behind it are always the same, its first digit is one of nine, and
/// behind that come ten digits or the number's end.
constexpr double kGuessed = (1 + 1.0 / 9 + 4.0 / 11 + 1) / (1 + kDigits + 1);

MakeExample maker(const Settings& s, uint64_t) {
  return [all = s.length - kBesides](Draws& draws, bool) {
    const int64_t depth = draws.between(1, kDepths);
    return example_of(passkey(draws, depth, all));
  };
}

const RegisterSymbolTask trained{SymbolTaskOf<Settings>{.id = "passkey-bytes",
                                                        .title = "A pass key at nine depths of filler, to train on",
                                                        .paper = "arXiv:2506.11305, figure 1",
                                                        .schema = schema,
                                                        .train = {"length-1024"},
                                                        .test = {"length-2048", "length-4096", "length-8192"},
                                                        .vocabulary = [](const Settings&) { return 256; },
                                                        .most_targets = [](const Settings&) { return 1 + kDigits + 1; },
                                                        .chance = [](const Settings&) { return kGuessed; },
                                                        .maker = maker,
                                                        .tokenizer = "bytes"}
                                     .task()};

const RegisterPromptTask entry{{"passkey",
                                false,
                                {1000, 2000, 4000, 8000, 16000, 24000, 32000, 40000, 48000, 56000, 64000},
                                kDepths* kRepeats,
                                [](const PromptInput& input) -> MakePrompt {
                                  if (input.length < 267)
                                    throw UsageError("a passkey map needs a length of at least 267 tokens, 1000 characters");
                                  return [length = input.length, seed = input.seed, &tokenizer = input.tokenizer](int64_t index) {
                                    return make(length, seed, tokenizer, index);
                                  };
                                }}};

}  // namespace
}  // namespace saccade

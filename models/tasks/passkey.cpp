// The passkey map of arXiv:2506.11305 (figure 1): a number of up to five digits at nine depths of filler, 3.75 characters to a token of the
// nominal length, five samples of each.
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

PromptSample make(int64_t length, uint64_t seed, const Tokenizer& tokenizer, int64_t index) {
  const int64_t depth = index / kRepeats % kDepths + 1, all = length * 15 / 4 / 1000 * 1000, before = depth * (all / 10);
  Draws draws(seed, "passkey " + std::to_string(length) + " " + std::to_string(index));
  PromptSample sample;
  sample.answer = std::to_string(draws.between(1, 49999));
  sample.depth = std::to_string(10 * depth) + " %";
  sample.max_tokens = static_cast<int64_t>(tokenizer.encode(sample.answer).size());
  sample.prompt = "\n" + filler(before) + "\n";
  sample.needle = sample.prompt.size();
  sample.prompt += "The pass key is " + sample.answer + "\n" + filler(all - before) + "\nThe pass key is";
  return sample;
}

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

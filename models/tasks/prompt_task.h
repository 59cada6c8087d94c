#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/corpus/tokenizer.h"
#include "models/tasks/symbol_task.h"

namespace saccade {

/// A text that ends where the model is to go on, and what it is to say.
struct PromptSample {
  std::string prompt, answer;
  size_t needle = 0;       ///< byte of the prompt at which what is asked for begins
  std::string depth;       ///< where that was put, for tables: "20-30 %"
  int64_t max_tokens = 0;  ///< to generate
};

/// To train on: the bytes of prompt and answer, of which the answer is asked for with the byte before it and the one behind it, as they
/// stand in the prompt.
SymbolExample example_of(const PromptSample& sample);

/// What samples are made from.
struct PromptInput {
  int64_t length = 0;  ///< tokens of prompt and answer, as the task counts them
  uint64_t seed = 42;
  const Tokenizer& tokenizer;
  std::string haystack;                        ///< text, where PromptTask::needs_text
  std::vector<std::string> adjectives, nouns;  ///< of which keys are made; empty: those that ship
};
/// The sample of a number: it depends on the input and the number alone. Throws UsageError where nothing fits into the length.
using MakePrompt = std::function<PromptSample(int64_t index)>;

/// One entry of the registry of generated prompts, which are answered by generation.
struct PromptTask {
  std::string id;  ///< "s-niah-1"
  bool needs_text = false;
  std::vector<int64_t> lengths;  ///< usual ones
  int64_t samples = 0;           ///< of a length
  std::function<MakePrompt(const PromptInput&)> maker;
  bool has_keys = false;  ///< that are made of PromptInput's words
};

/// All entries, sorted by id. A file registers its own with a namespace-scope `const RegisterPromptTask`.
const std::vector<const PromptTask*>& prompt_tasks();
/// Throws UsageError with a suggestion when there is none of that id.
const PromptTask& prompt_task(const std::string& id);

struct RegisterPromptTask {
  explicit RegisterPromptTask(PromptTask task);
};

/// English text in sentences: they end at ., ! or ? (with closing quotes) before a blank and a capital or a digit, but not behind common
/// abbreviations and single capitals. White space must be single blanks.
std::vector<std::string> split_sentences(const std::string& text);

/// "The grass is green. …": the filler of both tasks.
extern const std::string kFiller;

}  // namespace saccade

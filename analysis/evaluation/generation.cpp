#include "analysis/evaluation/generation.h"

namespace saccade {

Generation generate(LoadedModel& loaded, const GenerationOptions& options, const std::function<void(int32_t)>& chosen,
                    const std::atomic<bool>& stop) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  Generation result;
  result.prompt = tokenizer.encode(options.prompt);
  if (result.prompt.empty()) result.prompt = {tokenizer.end_of_text()};
  Decoder decoder(*loaded.model, static_cast<int64_t>(result.prompt.size()) + options.tokens);
  decoder.feed(result.prompt);
  while (static_cast<int64_t>(result.tokens.size()) < options.tokens && !stop) {
    const int32_t next = choose_token(decoder.logits(), options.temperature, options.seed, result.tokens.size());
    if (next == tokenizer.end_of_text()) {
      result.ended = true;
      break;
    }
    result.tokens.push_back(next);
    if (chosen) chosen(next);
    decoder.feed({&next, 1});
  }
  result.text = tokenizer.decode(result.tokens);
  return result;
}

}  // namespace saccade

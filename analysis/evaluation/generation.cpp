#include "analysis/evaluation/generation.h"

#include "models/training/batch_decoder.h"

namespace saccade {

std::vector<Generation> generate(LoadedModel& loaded, const std::vector<GenerationOptions>& options, int64_t side_by_side,
                                 const std::atomic<bool>& stop) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<Generation> results(options.size());
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < options.size(); ++i) {
    results[i].prompt = tokenizer.encode(options[i].prompt);
    if (results[i].prompt.empty()) results[i].prompt = {tokenizer.end_of_text()};
    prompts.push_back({results[i].prompt, options[i].tokens});
  }
  const auto choose = [&](const NextToken& next) {
    const Sampling& sampling = options[next.which].sampling;
    Generation& result = results[next.which];
    const int32_t token =
        sampling.temperature == 0 ? next.likeliest : choose_token(next.logits(), sampling, static_cast<uint64_t>(next.index));
    result.ended = token == tokenizer.end_of_text();
    if (!result.ended) result.tokens.push_back(token);
    return result.ended ? -1 : token;
  };
  continue_prompts(*loaded.model, prompts, side_by_side, choose, stop);
  for (Generation& result : results) result.text = tokenizer.decode(result.tokens);
  return results;
}

}  // namespace saccade

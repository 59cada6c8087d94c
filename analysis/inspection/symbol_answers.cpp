#include "analysis/inspection/symbol_answers.h"

#include <algorithm>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr int64_t kMostExamples = 1024, kMostTokens = int64_t{1} << 22;  // that are drawn anew

void cut_to(SymbolExample& example, size_t tokens) {
  for (std::vector<int32_t>* part : {&example.tokens, &example.targets, &example.sources}) part->resize(std::min(part->size(), tokens));
}

bool is_of(const SymbolExample& example, const Capture& sample) {
  if (example.tokens != sample.tokens) return false;
  for (size_t t = 0; t < example.targets.size(); ++t) {
    const auto asked = sample.asked->find(static_cast<int64_t>(t));
    if (example.targets[t] != (asked == sample.asked->end() ? kNoTarget : asked->second)) return false;
  }
  return true;
}

}  // namespace

std::vector<KnownAnswer> answers_of(const SymbolExample& example) {
  std::vector<KnownAnswer> answers;
  for (size_t t = 0; t < example.targets.size(); ++t) {
    const int64_t query = static_cast<int64_t>(t), source = example.sources[t];
    if (example.targets[t] == kNoTarget || source < 0) continue;
    const bool follows = t + 1 < example.tokens.size() && example.tokens[t + 1] == example.targets[t];
    KnownAnswer* last = answers.empty() ? nullptr : &answers.back();
    if (last && last->query + last->size == query && last->source + last->size == source && last->follows == follows)
      ++last->size;
    else
      answers.push_back({query, source, 1, follows});
  }
  return answers;
}

std::vector<KnownAnswer> answers_of(const Capture& sample, const std::string& task) {
  if (task.empty() || !sample.asked || sample.asked->empty()) return {};
  try {
    const SymbolDomain domain(symbol_task(task), sample.domain, "domain");
    const int64_t count = std::clamp<int64_t>(kMostTokens / domain.length(), 1, kMostExamples);
    for (int64_t i = 0; i < count; ++i) {
      SymbolExample example = domain.example(Split::validation, static_cast<uint64_t>(i));
      cut_to(example, sample.tokens.size());
      if (is_of(example, sample)) return answers_of(example);
    }
  } catch (const UsageError&) {  // a task of another version: what was captured is still to be seen
  }
  return {};
}

}  // namespace saccade

#include "models/tasks/prompt_task.h"

#include <cctype>
#include <set>

#include "models/entries.h"

namespace saccade {
namespace {

Entries<PromptTask>& entries() {
  static Entries<PromptTask> list;
  return list;
}

bool is_abbreviation(const std::string& word) {
  static const std::set<std::string> known{"Mr.",  "Mrs.", "Ms.", "Dr.",  "Prof.", "St.", "Jr.",  "Sr.",  "vs.",  "etc.", "e.g.",
                                           "i.e.", "cf.",  "No.", "Vol.", "Inc.",  "Co.", "Ltd.", "Gen.", "Col.", "Fig.", "approx."};
  const bool initial = word.size() == 2 && std::isupper(static_cast<unsigned char>(word[0])) && word[1] == '.';
  return initial || known.contains(word);
}

}  // namespace

const std::string kFiller = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

RegisterPromptTask::RegisterPromptTask(PromptTask task) {
  entries().add(std::move(task), [](const PromptTask& t) { return t.id; });
}
const std::vector<const PromptTask*>& prompt_tasks() { return entries().all(); }
const PromptTask& prompt_task(const std::string& id) { return entries().find("generated prompt", id); }

SymbolExample example_of(const PromptSample& sample) {
  const size_t stands = sample.prompt.find(sample.answer, sample.needle) - 1;
  const std::string text = sample.prompt + sample.prompt.substr(stands, sample.answer.size() + 2);
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  SymbolExample e;
  for (size_t next = 1; next < text.size(); ++next) {
    const bool asked = next >= sample.prompt.size();
    e.add(byte(next - 1), asked ? byte(next) : kNoTarget, asked ? static_cast<int64_t>(stands + next - sample.prompt.size()) : -1);
  }
  return e;
}

std::vector<std::string> split_sentences(const std::string& text) {
  std::vector<std::string> sentences;
  size_t begin = 0;
  for (size_t blank = text.find(' '); blank != text.npos; blank = text.find(' ', blank + 1)) {
    const size_t stop = blank == 0 ? text.npos : text.find_last_not_of("\"')", blank - 1);
    if (stop == text.npos || blank + 1 >= text.size() || std::string_view(".!?").find(text[stop]) == std::string_view::npos) continue;
    const size_t quoted = text.find_first_not_of("\"'(", blank + 1);
    const auto next = static_cast<unsigned char>(quoted == text.npos ? ' ' : text[quoted]);
    if (!std::isupper(next) && !std::isdigit(next)) continue;
    const size_t space = text.rfind(' ', blank - 1), word = space == text.npos || space < begin ? begin : space + 1;
    if (is_abbreviation(text.substr(word, blank - word))) continue;
    sentences.push_back(text.substr(begin, blank - begin));
    begin = blank + 1;
  }
  if (begin < text.size()) sentences.push_back(text.substr(begin));
  return sentences;
}

}  // namespace saccade

#include "analysis/inspection/text_sources.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>

#include "kernels/engine/error.h"
#include "models/corpus/tasks.h"

namespace saccade {
namespace {

void cut(InspectedText& text, int64_t most) {
  text.cut = static_cast<int64_t>(text.tokens.size()) > most;
  if (text.cut) text.tokens.resize(static_cast<size_t>(most));
}

}  // namespace

TokenPlaces::TokenPlaces(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  const auto size_of = [&](std::span<const int32_t> part) { return static_cast<int64_t>(tokenizer.decode(part).size()); };
  bounds_ = {0};
  if (tokens.empty()) return;
  // Behind the first token, for some tokenizers leave out a blank at the beginning of a text.
  bounds_.push_back(size_of({tokens.data(), 1}));
  for (size_t i = 1; i < tokens.size(); ++i)
    bounds_.push_back(bounds_.back() + size_of(std::array{tokens.front(), tokens[i]}) - bounds_[1]);
  if (bounds_.back() == size_of(tokens)) return;
  for (size_t i = 0; i <= tokens.size(); ++i) bounds_[i] = size_of({tokens.data(), i});  // tokens that are read otherwise beside others
}

int64_t TokenPlaces::of_byte(int64_t byte) const {
  return std::upper_bound(bounds_.begin() + 1, bounds_.end(), byte) - (bounds_.begin() + 1);
}

InspectedText typed_text(const Tokenizer& tokenizer, const std::string& text, int64_t most) {
  InspectedText typed{"typed text", tokenizer.encode(text)};
  if (typed.tokens.empty()) throw DataError("the text has no token");
  cut(typed, most);
  return typed;
}

InspectedText text_of_file(const Tokenizer& tokenizer, const std::string& path, int64_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw DataError(path + " is no file");
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(kMostTextBytes), '\0');
  file.read(text.data(), kMostTextBytes);
  if (file.bad() || (!file && !file.eof())) throw DataError(path + " cannot be read");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) throw DataError(path + " is empty");
  InspectedText read = typed_text(tokenizer, text, most);
  read.title = std::filesystem::path(path).filename().string();
  return read;
}

InspectedText task_text(const Tokenizer& tokenizer, const TaskText& task, int64_t most) {
  const int64_t shortest = shortest_task_document(task.task);  // throws for another task
  if (task.length < shortest || task.length > kMostTextBytes)
    throw UsageError("length is " + std::to_string(task.length) + "; expected " + std::to_string(shortest) + " to " +
                     std::to_string(kMostTextBytes) + " bytes for " + task.task);
  const std::string document = make_task_document(task.task, task.length, task.seed, task.index);
  InspectedText text = typed_text(tokenizer, document, most);
  text.title = task.task + " " + std::to_string(task.index);
  const TokenPlaces places(tokenizer, text.tokens);
  for (const TaskAnswer& answer : find_task_answers(task.task, document)) {
    const int64_t first = places.of_byte(answer.begin), end = places.of_byte(answer.begin + answer.size - 1) + 1;
    const int64_t source = places.of_byte(answer.source);
    if (first > 0 && end <= static_cast<int64_t>(text.tokens.size())) text.answers.push_back({first - 1, source, end - first});
  }
  return text;
}

}  // namespace saccade

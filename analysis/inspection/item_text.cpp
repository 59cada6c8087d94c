#include "analysis/inspection/item_text.h"

#include <algorithm>
#include <utility>

#include "analysis/inspection/symbol_answers.h"
#include "analysis/tasks/scored_items.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// Byte of the context at which the answer itself stands, at or behind the needle; npos where it does not.
size_t answer_in(const TaskItem& item) {
  if (item.target.empty()) return std::string::npos;
  return item.requests.front().context.find(item.target, item.needle);
}

InspectedText text_of_item(const TaskItem& item, const Tokenizer& tokenizer) {
  const TaskRequest& right = item.requests.at(item.gold);
  std::string context = right.context, answer = right.continuation.empty() ? item.target : right.continuation;
  if (right.continuation.empty() && !context.empty() && !std::isspace(static_cast<unsigned char>(context.back()))) context += ' ';
  InspectedText text{"", tokenizer.encode(context + answer)};
  if (text.tokens.empty()) throw DataError("the item has no token");
  const TokenPlaces places(tokenizer, text.tokens);
  // Blanks before an answer belong to its first token in most tokenizers: the query is the one before what holds its first other byte.
  const size_t begin = std::min(answer.find_first_not_of(' '), answer.size());
  const int64_t first = places.of_byte(static_cast<int64_t>(context.size() + begin));
  const int64_t end = static_cast<int64_t>(text.tokens.size());
  text.query = std::max<int64_t>(0, first - 1);
  if (const size_t at = answer_in(item); at != std::string::npos && first > 0) {
    const int64_t source = places.of_byte(static_cast<int64_t>(at));
    const int64_t source_end = places.of_byte(static_cast<int64_t>(at + item.target.size() - 1)) + 1;
    text.answers.push_back({first - 1, source, std::min(end - first, source_end - source)});
  }
  return text;
}

InspectedText text_of_symbols(const SymbolExample& example) {
  InspectedText text{"", example.tokens, answers_of(example)};
  auto& asked = text.asked.emplace();
  for (size_t t = 0; t < example.targets.size(); ++t)
    if (example.targets[t] != kNoTarget) asked[static_cast<int64_t>(t)] = example.targets[t];
  if (!asked.empty()) text.query = asked.begin()->first;
  return text;
}

/// Keeps the end: there the question stands.
void keep_last(InspectedText& text, int64_t most) {
  text.left_out = std::max<int64_t>(0, static_cast<int64_t>(text.tokens.size()) - most);
  if (text.left_out == 0) return;
  text.tokens.erase(text.tokens.begin(), text.tokens.begin() + text.left_out);
  text.query = std::max<int64_t>(-1, text.query - text.left_out);
  const auto lost = [&](const KnownAnswer& answer) { return std::min(answer.source, answer.query) < text.left_out; };
  text.lost_answers = static_cast<int64_t>(std::erase_if(text.answers, lost));
  for (KnownAnswer& answer : text.answers) answer.query -= text.left_out, answer.source -= text.left_out;
  if (!text.asked) return;
  for (const auto& [query, token] : std::exchange(*text.asked, {}))
    if (query >= text.left_out) (*text.asked)[query - text.left_out] = token;
}

}  // namespace

InspectedText item_text(const ItemPlace& place, const RunConfig& config, const Tokenizer& tokenizer, int64_t most) {
  const ScoredItem item = scored_item(place.run, place.task, place.step, place.item, config, tokenizer);
  InspectedText text = item.symbols ? text_of_symbols(*item.symbols) : text_of_item(item.text, tokenizer);
  text.title = place.task + ", item " + std::to_string(place.item);
  keep_last(text, most);
  return text;
}

}  // namespace saccade

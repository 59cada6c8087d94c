#include "analysis/tasks/scoring.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// Lengths are rounded up to this, so that a GPU captures few graphs.
constexpr int64_t kPadding = 32;

int64_t read_length(const EncodedRequest& request, Batching batching) {
  const auto fed = static_cast<int64_t>(request.tokens.size()) - 1;
  return batching == Batching::equal ? fed : (fed + kPadding - 1) / kPadding * kPadding;
}

template <class Value>
size_t first_largest(const std::vector<double>& log_likelihoods, Value&& value) {
  size_t best = 0;
  for (size_t i = 1; i < log_likelihoods.size(); ++i)
    if (value(i) > value(best)) best = i;
  return best;
}

TaskScore mean_of(const std::string& metric, const std::vector<double>& right) {
  const double n = static_cast<double>(right.size());
  return {metric, std::accumulate(right.begin(), right.end(), 0.0) / n, standard_error(right), static_cast<int64_t>(right.size())};
}

}  // namespace

EncodedRequest encode_request(const Tokenizer& tokenizer, const TaskRequest& request, Prefix prefix, int64_t longest) {
  const size_t end = request.context.find_last_not_of(" \t\n\r\f\v") + 1;
  const std::string context = request.context.substr(0, end), continuation = request.context.substr(end) + request.continuation;
  EncodedRequest encoded;
  encoded.tokens = tokenizer.encode(context + continuation);
  const auto all = static_cast<int64_t>(encoded.tokens.size());
  const auto head = context.empty() ? 0 : static_cast<int64_t>(tokenizer.encode(context).size());
  encoded.scored = all - head;
  if (encoded.scored <= 0) throw DataError("the continuation \"" + request.continuation.substr(0, 60) + "\" has no token of its own");
  if (context.empty() || prefix == Prefix::end_of_text) encoded.tokens.insert(encoded.tokens.begin(), tokenizer.end_of_text());
  if (longest > 0 && static_cast<int64_t>(encoded.tokens.size()) > longest + 1) {
    encoded.tokens.erase(encoded.tokens.begin(), encoded.tokens.end() - (longest + 1));
    encoded.cut = true;
    encoded.scored = std::min(encoded.scored, longest);
  }
  return encoded;
}

void score_requests(EvaluationPass& pass, std::span<const EncodedRequest> requests, std::span<const size_t> which, Batching batching,
                    const std::function<bool(const std::vector<ScoredRequest>&)>& batch) {
  std::vector<size_t> order(which.begin(), which.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return read_length(requests[a], batching) > read_length(requests[b], batching); });
  for (size_t first = 0; first < order.size();) {
    const int64_t length = read_length(requests[order[first]], batching), rows = pass.piece_sequences(length);
    size_t last = first;
    while (last < order.size() && static_cast<int64_t>(last - first) < rows && read_length(requests[order[last]], batching) == length)
      ++last;
    const auto size = static_cast<size_t>(rows * length);
    std::vector<int32_t> tokens(size), targets(size);  // rows that are left over are zeros: a piece has one shape
    for (size_t i = first; i < last; ++i) {
      const std::vector<int32_t>& own = requests[order[i]].tokens;
      std::copy(own.begin(), own.end() - 1, tokens.begin() + static_cast<int64_t>(i - first) * length);
      std::copy(own.begin() + 1, own.end(), targets.begin() + static_cast<int64_t>(i - first) * length);
    }
    const std::vector<double> losses = pass.token_losses(tokens.data(), targets.data(), rows, length);
    std::vector<ScoredRequest> scored;
    for (size_t i = first; i < last; ++i) {
      const EncodedRequest& request = requests[order[i]];
      const auto end = losses.begin() + static_cast<int64_t>(i - first) * length + static_cast<int64_t>(request.tokens.size()) - 1;
      scored.push_back({order[i], -std::accumulate(end - request.scored, end, 0.0)});
    }
    if (!batch(scored)) return;
    first = last;
  }
}

int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

ItemScore score_item(const TaskItem& item, std::vector<double> log_likelihoods) {
  ItemScore score{std::move(log_likelihoods), 0, 0, 0, item.gold, item.group};
  const std::vector<double>& ll = score.log_likelihoods;
  const auto choice = [&](size_t i) -> const std::string& { return item.requests[i].choice; };
  score.chosen = first_largest(ll, [&](size_t i) { return ll[i]; });
  score.chosen_norm = first_largest(ll, [&](size_t i) { return ll[i] / static_cast<double>(characters(choice(i))); });
  score.chosen_bytes = first_largest(ll, [&](size_t i) { return ll[i] / static_cast<double>(choice(i).size()); });
  return score;
}

std::vector<TaskScore> task_scores(const Task& task, const std::vector<ItemScore>& items) {
  std::vector<double> plain, norm, bytes;
  std::map<std::string, std::vector<double>> groups, groups_of_groups;
  for (const ItemScore& item : items) {
    plain.push_back(item.chosen == item.gold), norm.push_back(item.chosen_norm == item.gold);
    bytes.push_back(item.chosen_bytes == item.gold);
    if (item.group.empty()) continue;
    const double right = task.metric == "acc_norm" ? norm.back() : plain.back();
    groups[item.group].push_back(right);
    if (const auto name = task.group_names.find(item.group); name != task.group_names.end())
      groups_of_groups[name->second].push_back(right);
  }
  std::vector<TaskScore> scores{mean_of("acc", plain), mean_of("acc_norm", norm), mean_of("acc_bytes", bytes)};
  for (const auto* some : {&groups, &groups_of_groups})
    for (const auto& [name, right] : *some) scores.push_back(mean_of(task.metric + " " + name, right));
  return scores;
}

double chance_level(const std::vector<TaskItem>& items) {
  double guess = 0;
  std::map<std::string, int64_t> answers;  // where all items have the same choices
  bool same = true;
  for (const TaskItem& item : items) {
    guess += 1.0 / static_cast<double>(item.requests.size() * items.size());
    ++answers[item.requests[item.gold].choice];
    for (size_t i = 0; i < item.requests.size(); ++i)
      same = same && i < items.front().requests.size() && item.requests[i].choice == items.front().requests[i].choice;
  }
  int64_t most = 0;
  for (const auto& [answer, count] : answers) most = std::max(most, count);
  return same ? std::max(guess, static_cast<double>(most) / static_cast<double>(items.size())) : guess;
}

}  // namespace saccade

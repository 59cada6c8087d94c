#include "analysis/tasks/scoring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/tasks/unicode_text.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// Lengths are rounded up to this, so that a GPU captures few graphs.
constexpr int64_t kPadding = 32;
/// A context is read once if it has at least this many tokens; with its continuations it is rounded up to a multiple of kTailPadding.
constexpr int64_t kLeastShared = 8, kTailPadding = 8;

int64_t read_length(const EncodedRequest& request, Batching batching) {
  const auto fed = static_cast<int64_t>(request.tokens.size()) - 1;
  return batching == Batching::equal ? fed : (fed + kPadding - 1) / kPadding * kPadding;
}

/// The requests of each item that are in `which`; each request of no item alone.
std::vector<std::vector<size_t>> by_item(std::span<const EncodedRequest> requests, std::span<const size_t> which) {
  std::vector<std::vector<size_t>> items;
  std::map<int64_t, size_t> place;
  for (const size_t r : which) {
    const auto [found, is_new] = place.emplace(requests[r].item, items.size());
    if (!is_new && requests[r].item >= 0)
      items[found->second].push_back(r);
    else
      items.push_back({r});
  }
  return items;
}

/// An item whose requests begin with the same `context` tokens; at most `tail` are read behind them.
struct SharedItem {
  std::vector<size_t> requests;
  int64_t context = 0, tail = 0;
};
/// All that the requests have in common and that is not scored, but for the last token of it: what follows that one is scored.
SharedItem shared_item(std::span<const EncodedRequest> requests, const std::vector<size_t>& which) {
  SharedItem item{which, 0, 0};
  if (which.size() < 2) return item;
  const std::vector<int32_t>& first = requests[which[0]].tokens;
  auto common = static_cast<int64_t>(first.size()), longest = int64_t{0};
  for (const size_t r : which) {
    const std::vector<int32_t>& own = requests[r].tokens;
    const auto size = static_cast<int64_t>(own.size());
    const auto differs = std::mismatch(first.begin(), first.end(), own.begin(), own.end()).first;
    common = std::min({common, static_cast<int64_t>(differs - first.begin()), size - requests[r].scored});
    longest = std::max(longest, size);
  }
  item.context = common - 1;
  item.tail = (longest - 1 + kTailPadding - 1) / kTailPadding * kTailPadding - item.context;
  return item;
}

/// A request whose continuation is the `count` targets from `first` on.
ScoredRequest scored_request(const TokenScores& scores, size_t request, int64_t first, int64_t count) {
  const auto losses = scores.losses.begin() + first;
  ScoredRequest scored{request, -std::accumulate(losses, losses + count, 0.0), false};
  if (!scores.right.empty())
    scored.greedy = std::all_of(scores.right.begin() + first, scores.right.begin() + first + count, [](bool r) { return r; });
  return scored;
}

/// Items of one length of context, each read once, and all continuations.
std::vector<ScoredRequest> score_continuations(EvaluationPass& pass, std::span<const EncodedRequest> requests,
                                               std::span<const SharedItem> items, bool greedy) {
  Continuations batch;
  batch.context_length = items.front().context;
  std::vector<size_t> rows;
  for (const SharedItem& item : items) {
    const std::vector<int32_t>& first = requests[item.requests.front()].tokens;
    const auto number = static_cast<int32_t>(static_cast<int64_t>(batch.contexts.size()) / batch.context_length);
    batch.contexts.insert(batch.contexts.end(), first.begin(), first.begin() + batch.context_length);
    batch.length = std::max(batch.length, item.tail);
    for (const size_t r : item.requests) rows.push_back(r), batch.context_of.push_back(number);
  }
  batch.tokens.assign(rows.size() * static_cast<size_t>(batch.length), 0);
  batch.targets.assign(batch.tokens.size(), kNoTarget);
  const auto begin_of = [&](size_t row) { return static_cast<int64_t>(row) * batch.length; };
  const auto read = [&](size_t row) { return static_cast<int64_t>(requests[rows[row]].tokens.size()) - 1 - batch.context_length; };
  for (size_t row = 0; row < rows.size(); ++row) {
    const EncodedRequest& request = requests[rows[row]];
    std::copy(request.tokens.begin() + batch.context_length, request.tokens.end() - 1, batch.tokens.begin() + begin_of(row));
    std::copy(request.tokens.end() - request.scored, request.tokens.end(),
              batch.targets.begin() + begin_of(row) + read(row) - request.scored);
  }
  const TokenScores scores = pass.continuation_scores(batch, greedy);
  std::vector<ScoredRequest> scored;
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t count = requests[rows[row]].scored;
    scored.push_back(scored_request(scores, rows[row], begin_of(row) + read(row) - count, count));
  }
  return scored;
}

/// The longest contexts first; those of one length side by side. False when `batch` ended the work.
bool score_shared(EvaluationPass& pass, std::span<const EncodedRequest> requests, std::vector<SharedItem> items, bool greedy,
                  const std::function<bool(const std::vector<ScoredRequest>&)>& batch) {
  std::stable_sort(items.begin(), items.end(),
                   [](const SharedItem& a, const SharedItem& b) { return std::tie(a.context, a.tail) > std::tie(b.context, b.tail); });
  for (size_t first = 0, last = 0; first < items.size(); first = last) {
    // The first of a length has the longest continuations.
    const int64_t most = pass.piece_sequences(items[first].context + items[first].tail);
    int64_t rows = 0;
    do rows += static_cast<int64_t>(items[last++].requests.size());
    while (last < items.size() && items[last].context == items[first].context &&
           rows + static_cast<int64_t>(items[last].requests.size()) <= most);
    if (!batch(score_continuations(pass, requests, std::span(items).subspan(first, last - first), greedy))) return false;
  }
  return true;
}

/// Requests that are read to `length`, from their beginning.
std::vector<ScoredRequest> score_whole(EvaluationPass& pass, std::span<const EncodedRequest> requests, const std::vector<size_t>& which,
                                       int64_t length, bool greedy) {
  // Few shapes, for a GPU captures each: the last piece of a length has as many rows as the next power of two, zeros where none is left.
  const int64_t rows = std::min(pass.piece_sequences(length), static_cast<int64_t>(std::bit_ceil(which.size())));
  const auto size = static_cast<size_t>(rows * length);
  std::vector<int32_t> tokens(size), targets(size);
  const auto begin_of = [&](size_t row) {
    const EncodedRequest& request = requests[which[row]];
    return static_cast<int64_t>(row) * length + static_cast<int64_t>(request.tokens.size()) - 1 - request.scored;
  };
  for (size_t row = 0; row < which.size(); ++row) {
    const std::vector<int32_t>& own = requests[which[row]].tokens;
    std::copy(own.begin(), own.end() - 1, tokens.begin() + static_cast<int64_t>(row) * length);
    std::copy(own.begin() + 1, own.end(), targets.begin() + static_cast<int64_t>(row) * length);
  }
  const TokenScores scores = pass.token_scores(tokens.data(), targets.data(), rows, length, greedy);
  std::vector<ScoredRequest> scored;
  for (size_t row = 0; row < which.size(); ++row) {
    scored.push_back(scored_request(scores, which[row], begin_of(row), requests[which[row]].scored));
  }
  return scored;
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

constexpr std::array<const char*, 3> kPrefixes{"none", "begin", "end_of_text"};

}  // namespace

const char* to_string(Prefix prefix) { return kPrefixes[static_cast<size_t>(prefix)]; }

Prefix parse_prefix(const std::string& name) {
  for (size_t i = 0; i < kPrefixes.size(); ++i)
    if (name == kPrefixes[i]) return static_cast<Prefix>(i);
  throw UsageError("prefix \"" + name + "\"; expected none, begin or end_of_text");
}

void add_prefix(const Tokenizer& tokenizer, Prefix prefix, bool context_is_empty, std::vector<int32_t>& tokens) {
  if (prefix == Prefix::end_of_text)
    tokens.insert(tokens.begin(), tokenizer.end_of_text());
  else if (prefix == Prefix::begin || context_is_empty)
    tokens.insert(tokens.begin(), tokenizer.begin_of_text());
}

EncodedRequest encode_request(const Tokenizer& tokenizer, const TaskRequest& request, Prefix prefix, int64_t longest) {
  const size_t end = without_blanks_behind(request.context).size();
  const std::string context = request.context.substr(0, end), continuation = request.context.substr(end) + request.continuation;
  EncodedRequest encoded;
  encoded.tokens = tokenizer.encode(context + continuation);
  const auto all = static_cast<int64_t>(encoded.tokens.size());
  const auto head = context.empty() ? 0 : static_cast<int64_t>(tokenizer.encode(context).size());
  encoded.scored = all - head;
  if (encoded.scored <= 0) throw DataError("the continuation \"" + request.continuation.substr(0, 60) + "\" has no token of its own");
  add_prefix(tokenizer, prefix, context.empty(), encoded.tokens);
  if (longest > 0 && static_cast<int64_t>(encoded.tokens.size()) > longest + 1) {
    encoded.tokens.erase(encoded.tokens.begin(), encoded.tokens.end() - (longest + 1));
    encoded.cut = true;
    encoded.scored = std::min(encoded.scored, longest);
  }
  return encoded;
}

void score_requests(EvaluationPass& pass, std::span<const EncodedRequest> requests, std::span<const size_t> which,
                    const ScoringOptions& options, const std::function<bool(const std::vector<ScoredRequest>&)>& batch) {
  std::vector<SharedItem> items;
  std::vector<size_t> alone;
  int64_t decoded = 0;  // the longest that the model is known to decode
  const bool shares = options.shared_contexts && options.batching == Batching::padded;
  for (const std::vector<size_t>& item : by_item(requests, which)) {
    const SharedItem shared = shares ? shared_item(requests, item) : SharedItem{};
    const int64_t length = shared.context + shared.tail;
    if (shared.context >= kLeastShared && (length <= decoded || pass.decodes(length)))
      items.push_back(shared), decoded = std::max(decoded, length);
    else
      alone.insert(alone.end(), item.begin(), item.end());
  }
  if (!score_shared(pass, requests, std::move(items), options.greedy, batch)) return;
  std::stable_sort(alone.begin(), alone.end(), [&](size_t a, size_t b) {
    return read_length(requests[a], options.batching) > read_length(requests[b], options.batching);
  });
  for (size_t first = 0, last = 0; first < alone.size(); first = last) {
    const int64_t length = read_length(requests[alone[first]], options.batching), most = pass.piece_sequences(length);
    while (last < alone.size() && static_cast<int64_t>(last - first) < most &&
           read_length(requests[alone[last]], options.batching) == length)
      ++last;
    if (!batch(score_whole(pass, requests, {alone.begin() + static_cast<int64_t>(first), alone.begin() + static_cast<int64_t>(last)},
                           length, options.greedy)))
      return;
  }
}

int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

ItemScore score_item(const TaskItem& item, std::vector<double> log_likelihoods) {
  ItemScore score{std::move(log_likelihoods), 0, 0, 0, item.gold, item.group};
  const std::vector<double>& ll = score.log_likelihoods;
  const auto choice = [&](size_t i) -> const std::string& { return item.requests[i].choice; };
  for (const TaskRequest& request : item.requests) score.characters.push_back(characters(request.choice));
  score.chosen = first_largest(ll, [&](size_t i) { return ll[i]; });
  score.chosen_norm = first_largest(ll, [&](size_t i) { return ll[i] / static_cast<double>(score.characters[i]); });
  score.chosen_bytes = first_largest(ll, [&](size_t i) { return ll[i] / static_cast<double>(choice(i).size()); });
  return score;
}

bool contains_answer(const std::string& answer, const std::string& target) {
  return lower(answer).find(lower(target)) != std::string::npos;
}

bool is_answer(const std::string& answer, const std::string& target) { return trimmed(answer) == target; }

double answer_is_right(const Task& task, const std::string& answer, const std::string& target) {
  return task.metric == "exact" ? is_answer(answer, target) : contains_answer(answer, target);
}

std::vector<TaskScore> answer_scores(const Task& task, const std::vector<AnswerScore>& items) {
  std::vector<double> all;
  std::vector<std::pair<std::string, std::vector<double>>> groups;
  for (const AnswerScore& item : items) {
    all.push_back(item.right);
    if (item.group.empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == item.group; });
    if (group == groups.end()) group = groups.insert(groups.end(), {item.group, {}});
    group->second.push_back(item.right);
  }
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TaskScore> scores{mean_of(task.metric, all)};
  for (const auto& [name, right] : groups) scores.push_back(mean_of(task.metric + " " + name, right));
  return scores;
}

std::vector<TaskScore> task_scores(const Task& task, const std::vector<ItemScore>& items) {
  std::vector<double> plain, norm, bytes;
  std::map<std::string, std::vector<double>> groups, groups_of_groups;
  for (const ItemScore& item : items) {
    plain.push_back(item.chosen == item.gold), norm.push_back(item.chosen_norm == item.gold);
    bytes.push_back(item.chosen_bytes == item.gold);
    if (item.group.empty()) continue;
    const double right = task.metric == "acc_norm" ? norm.back() : task.metric == "acc_bytes" ? bytes.back() : plain.back();
    groups[item.group].push_back(right);
    if (const auto name = task.group_names.find(item.group); name != task.group_names.end())
      groups_of_groups[name->second].push_back(right);
  }
  std::vector<TaskScore> scores{mean_of("acc", plain), mean_of("acc_norm", norm), mean_of("acc_bytes", bytes)};
  if (!items.empty() && !items.front().greedy.empty()) {
    std::vector<double> greedy;
    for (const ItemScore& item : items) greedy.push_back(item.greedy[item.gold]);
    scores.push_back(mean_of("greedy", greedy));
  }
  for (const auto* some : {&groups, &groups_of_groups})
    for (const auto& [name, right] : *some) scores.push_back(mean_of(task.metric + " " + name, right));
  return scores;
}

double chance_level(const std::vector<TaskItem>& items) {
  double guess = 0;
  for (const TaskItem& item : items)
    if (item.requests.size() > 1) guess += 1.0 / (static_cast<double>(item.requests.size()) * static_cast<double>(items.size()));
  return guess;
}

}  // namespace saccade

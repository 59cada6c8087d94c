#include "analysis/tasks/answers.h"

#include <algorithm>
#include <bit>
#include <map>

#include "kernels/engine/error.h"
#include "models/tasks/symbol_task.h"
#include "models/training/decoder.h"
#include "models/training/plan.h"

namespace saccade {
namespace {

/// The first place at which one of the stops begins.
size_t first_stop(const std::string& text, const std::vector<std::string>& stops) {
  size_t first = text.npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

/// Sums over answers that are alike, an example's share of them in each.
struct Tally {
  double right = 0, asked = 0;
  std::vector<double> shares;
  std::vector<int64_t> counts;
  void add(double r, int64_t n) {
    right += r, asked += static_cast<double>(n);
    shares.push_back(r / static_cast<double>(n)), counts.push_back(n);
  }
  TaskScore score(const std::string& name) const {
    return {name, right / asked, standard_error(shares, counts), static_cast<int64_t>(asked)};
  }
};

/// "8-15": the power of two at or below a number, to the next.
std::pair<int64_t, std::string> bin_of(int64_t number) {
  if (number == 0) return {0, "0"};
  const auto low = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(number)));
  return {low, low == 1 ? "1" : std::to_string(low) + "-" + std::to_string(2 * low - 1)};
}

void require_symbols(const LoadedModel& loaded, const SymbolDomain& domain, const std::string& task) {
  if (!loaded.config.data.tokenizer.starts_with("symbols:") || loaded.tokenizer->vocabulary() < domain.vocabulary())
    throw UsageError("task " + task + " has " + std::to_string(domain.vocabulary()) + " symbols, the run's tokenizer is " +
                     loaded.config.data.tokenizer +
                     "; name a difficulty with as many symbols as the run was trained on, or train on this one with data.task");
  planned_evaluation_bytes(loaded.config, loaded.tokenizer->vocabulary(), loaded.model->arena().device().engine, domain.length());
}

}  // namespace

Answer answer_item(LoadedModel& loaded, const TaskItem& item, const AnswerOptions& options) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<int32_t> prompt = tokenizer.encode(item.requests.front().context);
  if (prompt.empty() || options.prefix == Prefix::end_of_text) prompt.insert(prompt.begin(), tokenizer.end_of_text());
  Answer answer;
  const int64_t room = options.longest - item.max_tokens;
  if (options.longest > 0 && room < 1)
    throw UsageError("an answer of " + std::to_string(item.max_tokens) + " tokens leaves no room for a prompt in the " +
                     std::to_string(options.longest) + " that the model reads");
  if (options.longest > 0 && static_cast<int64_t>(prompt.size()) > room) {
    prompt.erase(prompt.begin(), prompt.end() - room);
    answer.cut = true;
  }
  answer.prompt_tokens = static_cast<int64_t>(prompt.size());
  Decoder decoder(*loaded.model, answer.prompt_tokens + item.max_tokens);
  decoder.feed(prompt);
  std::vector<int32_t> written;
  while (static_cast<int64_t>(written.size()) < item.max_tokens) {
    const int32_t next = choose_token(decoder.logits(), 0, 0, 0);
    if (next == tokenizer.end_of_text()) break;
    written.push_back(next);
    answer.text = tokenizer.decode(written);
    if (const size_t end = first_stop(answer.text, options.stop); end != answer.text.npos) {
      answer.text.resize(end);
      break;
    }
    if (static_cast<int64_t>(written.size()) < item.max_tokens) decoder.feed({&next, 1});
  }
  return answer;
}

double needle_depth(const Tokenizer& tokenizer, const TaskItem& item) {
  const std::string& prompt = item.requests.front().context;
  return static_cast<double>(tokenizer.encode(prompt.substr(0, item.needle)).size()) / static_cast<double>(tokenizer.encode(prompt).size());
}

SymbolScores score_symbols(LoadedModel& loaded, const Task& task, int64_t samples, const std::function<void(double)>& progress) {
  const SymbolDomain domain(symbol_task(task.generator), task.domain, "--domains");
  require_symbols(loaded, domain, task.name);
  InferenceModel& model = *loaded.model;
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(loaded.config.training));
  const FrozenBatch batch = task_batch(task.generator, task.domain, {Split::test, 0, samples});
  const Evaluation evaluation = pass.evaluate(batch, [&](int64_t done) {
    if (progress) progress(static_cast<double>(done) / static_cast<double>(samples));
  });
  SymbolScores result;
  Tally all, exact;
  std::map<int64_t, std::pair<std::string, Tally>> distances, positions;
  for (int64_t s = 0; s < samples; ++s) {
    const SymbolExample example = domain.example(Split::test, static_cast<uint64_t>(s));
    std::map<int64_t, std::pair<double, int64_t>> by_distance, by_position;
    std::pair<double, int64_t> own;
    const auto count = [](std::pair<double, int64_t>& to, bool right) { to.first += right, ++to.second; };
    for (size_t t = 0; t < example.targets.size(); ++t) {
      if (example.targets[t] == kNoTarget) continue;
      const bool right = evaluation.right[static_cast<size_t>(s * batch.length) + t];
      count(own, right);
      count(by_position[bin_of(static_cast<int64_t>(t)).first], right);
      if (example.sources[t] >= 0) count(by_distance[bin_of(static_cast<int64_t>(t) - example.sources[t]).first], right);
    }
    all.add(own.first, own.second);
    exact.add(own.first == static_cast<double>(own.second) ? 1 : 0, 1);
    for (const auto& [bin, n] : by_distance) distances[bin].second.add(n.first, n.second);
    for (const auto& [bin, n] : by_position) positions[bin].second.add(n.first, n.second);
    result.items.push_back({.answer = "", .target = "", .right = own.first / static_cast<double>(own.second)});
  }
  result.scores = {all.score("acc"), exact.score("exact")};
  for (const auto& [bin, tally] : distances) result.scores.push_back(tally.second.score("acc distance " + bin_of(bin).second));
  for (const auto& [bin, tally] : positions) result.scores.push_back(tally.second.score("acc position " + bin_of(bin).second));
  return result;
}

}  // namespace saccade

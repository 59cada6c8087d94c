#include "analysis/tasks/answers.h"

#include <algorithm>
#include <bit>
#include <map>

#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "models/tasks/symbol_task.h"
#include "models/training/batch_decoder.h"
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
  if (!domain.reads(loaded.config.data.tokenizer))
    throw UsageError("task " + task + " is read by the tokenizer " + domain.tokenizer() + ", the run's is " + loaded.config.data.tokenizer +
                     "; name a difficulty with as many symbols as the run was trained on, or train on this one with data.task");
  planned_evaluation_bytes(loaded.config, loaded.rows(), loaded.model->arena().device().engine, domain.length());
}

/// The end of an item's context that leaves room for the answer.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const TaskItem& item, const AnswerOptions& options, Answer& answer) {
  std::vector<int32_t> prompt = tokenizer.encode(item.requests.front().context);
  add_prefix(tokenizer, options.prefix, prompt.empty(), prompt);
  const int64_t room = options.longest - item.max_tokens;
  if (options.longest > 0 && room < 1)
    throw UsageError("an answer of " + std::to_string(item.max_tokens) + " tokens leaves no room for a prompt in the " +
                     std::to_string(options.longest) + " that the model reads");
  if (options.longest > 0 && static_cast<int64_t>(prompt.size()) > room) {
    prompt.erase(prompt.begin(), prompt.end() - room);
    answer.cut = true;
  }
  answer.prompt_tokens = static_cast<int64_t>(prompt.size());
  return prompt;
}

}  // namespace

void answer_items(LoadedModel& loaded, std::span<const TaskItem> items, std::span<const size_t> which, const AnswerOptions& options,
                  const std::function<void(size_t, const Answer&)>& done, const std::atomic<bool>& stop) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<Prompt> prompts;
  std::vector<Answer> answers;
  prompts.resize(which.size()), answers.resize(which.size());
  parallel_for(static_cast<int64_t>(which.size()), [&](int64_t n) {
    const auto i = static_cast<size_t>(n);
    prompts[i] = {prompt_tokens(tokenizer, items[which[i]], options, answers[i]), items[which[i]].max_tokens};
  });
  std::vector<std::vector<int32_t>> written(which.size());
  const auto choose = [&](const NextToken& next) {
    const size_t i = next.which;
    Answer& answer = answers[i];
    bool ended = next.likeliest == tokenizer.end_of_text();
    if (!ended) {
      written[i].push_back(next.likeliest);
      answer.text = tokenizer.decode(written[i]);
      const size_t end = first_stop(answer.text, options.stop);
      ended = end != answer.text.npos;
      if (ended) answer.text.resize(end);
    }
    if (ended || static_cast<int64_t>(written[i].size()) == prompts[i].most) done(which[i], answer);
    return ended ? -1 : next.likeliest;
  };
  continue_prompts(*loaded.model, prompts, options.side_by_side, choose, stop);
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

#include "analysis/tasks/task_run.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/training/training_run.h"
#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "models/corpus/sha256.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFolder = "tasks";
constexpr int64_t kFormat = 1;

const char* to_string(Prefix prefix) { return prefix == Prefix::end_of_text ? "end_of_text" : "none"; }

/// What decides the scores: two results with the same key are the same.
json key_of(const TaskResult& r) {
  return {{"task", r.task},
          {"version", r.version},
          {"task_hash", r.task_hash},
          {"data_hash", r.data_hash},
          {"shots", r.shots},
          {"limit", r.limit},
          {"strict_spaces", r.strict_spaces},
          {"prefix", to_string(r.prefix)},
          {"max_length", r.max_length},
          {"step", r.step},
          {"checkpoint_hash", r.checkpoint_hash},
          {"device", r.device},
          {"precision", r.precision}};
}

/// NaN has no place in JSON.
json number(double value) { return std::isnan(value) ? json() : json(value); }
double number(const json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

TaskResult result_of(const json& j) {
  const json& key = j.at("key");
  TaskResult r;
  r.task = key.at("task"), r.task_hash = key.at("task_hash"), r.version = key.at("version"), r.data_hash = key.at("data_hash");
  r.shots = key.at("shots"), r.limit = key.at("limit"), r.strict_spaces = key.at("strict_spaces"), r.max_length = key.at("max_length");
  r.prefix = key.at("prefix") == "none" ? Prefix::none : Prefix::end_of_text;
  r.step = key.at("step"), r.checkpoint_hash = key.at("checkpoint_hash"), r.device = key.at("device"), r.precision = key.at("precision");
  r.cut = j.at("cut"), r.chance = j.at("chance"), r.metric = j.at("metric");
  for (const json& s : j.at("scores")) r.scores.push_back({s.at("metric"), s.at("value"), number(s.at("standard_error")), s.at("items")});
  for (const json& i : j.at("items"))
    r.items.push_back({i.at("log_likelihoods"), i.at("chosen"), i.at("chosen_norm"), i.at("chosen_bytes"), i.at("gold"), i.at("group")});
  return r;
}

TaskResult read_result(const fs::path& file) {
  try {
    TaskResult result = result_of(json::parse(read_text(file)));
    result.cached = true;
    return result;
  } catch (const json::exception& error) {
    throw DataError(file.string() + " is damaged (" + std::string(error.what()).substr(0, 120) + ")");
  }
}

std::string checkpoint_hash(const fs::path& directory, int64_t step) {
  return hex(sha256(read_text(step_file(directory, kCheckpoints, step))));
}

/// Whether positions see what follows them (Avey's published ranker).
bool looks_ahead(const json& values) {
  const Architecture& block = architecture(values.at("block"));
  return block.looks_ahead && !block.looks_ahead(values).empty();
}

/// Tokens that the model reads at most; 0: any number (rotary or no positions, recurrences).
int64_t longest_input(const LoadedModel& loaded) {
  const int64_t trained = loaded.config.data.sequence_length;
  try {
    planned_evaluation_bytes(loaded.config, loaded.tokenizer->vocabulary(), loaded.model->arena().device().engine, 2 * trained + 1);
    return 0;
  } catch (const UsageError&) {
    return trained;
  }
}

/// Log-likelihoods that an evaluation which was stopped has left: a line with the key, then "[request, log-likelihood]" a line.
class PartialScores {
 public:
  PartialScores(fs::path file, const json& key, std::map<size_t, double>& scores) : file_(std::move(file)) {
    std::string text;
    try {
      text = read_text(file_);
    } catch (const DataError&) {
    }
    size_t at = std::min(text.find('\n'), text.size());
    if (text.substr(0, at) != key.dump()) {
      replace_text(file_, key.dump() + "\n");
      return;
    }
    for (++at; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == text.npos) break;  // a torn line
      const json line = json::parse(text.substr(at, end - at), nullptr, false);
      if (!line.is_array() || line.size() != 2) break;
      scores[line[0]] = line[1];
      at = end + 1;
    }
    if (at < text.size()) replace_text(file_, text.substr(0, at));
  }
  void add(const std::vector<ScoredRequest>& scored) const {
    std::string lines;
    for (const ScoredRequest& s : scored) lines += json{s.request, s.log_likelihood}.dump() + "\n";
    const Descriptor to = open_run_file(file_, O_WRONLY | O_APPEND);
    if (!write_all(to.get(), lines)) throw_file_error("write", file_);
  }
  void remove() const { remove_run_file(file_); }

 private:
  fs::path file_;
};

struct Requests {
  std::vector<EncodedRequest> encoded;
  std::vector<size_t> first_of_item;
};
Requests encode_items(const TaskItems& items, const Tokenizer& tokenizer, const TaskResult& result) {
  Requests requests;
  for (size_t i = 0; i < items.items.size(); ++i) {
    requests.first_of_item.push_back(requests.encoded.size());
    for (const TaskRequest& request : items.items[i].requests) try {
        requests.encoded.push_back(encode_request(tokenizer, request, result.prefix, result.max_length));
      } catch (const DataError& error) {
        throw DataError(items.file.string() + ": item " + std::to_string(i + 1) + ": " + error.what());
      }
  }
  return requests;
}

void require_finite(const std::vector<ScoredRequest>& scored, const std::string& task) {
  for (const ScoredRequest& s : scored)
    if (!std::isfinite(s.log_likelihood))
      throw DataError("task " + task + ": the model's log-likelihood of request " + std::to_string(s.request + 1) + " is no number");
}

}  // namespace

const TaskScore& TaskResult::score() const {
  return *std::find_if(scores.begin(), scores.end(), [&](const TaskScore& s) { return s.metric == metric; });
}

json to_json(const TaskResult& r) {
  json scores = json::array(), items = json::array();
  for (const TaskScore& s : r.scores)
    scores.push_back({{"metric", s.metric}, {"value", s.value}, {"standard_error", number(s.standard_error)}, {"items", s.items}});
  for (const ItemScore& i : r.items)
    items.push_back({{"log_likelihoods", i.log_likelihoods},
                     {"chosen", i.chosen},
                     {"chosen_norm", i.chosen_norm},
                     {"chosen_bytes", i.chosen_bytes},
                     {"gold", i.gold},
                     {"group", i.group}});
  return {{"format", kFormat},  {"key", key_of(r)}, {"cut", r.cut},  {"chance", r.chance},
          {"metric", r.metric}, {"scores", scores}, {"items", items}};
}

TaskResult evaluate_task(const fs::path& directory, const Task& task, const TaskRunOptions& options, const TaskProgress& progress,
                         const std::atomic<bool>& stop) {
  const TaskItems items = read_task_items(task, options.data, options.items);
  LoadedModel loaded = load_model(directory, options.checkpoint, options.device);
  use_threads(loaded.config.threads);
  InferenceModel& model = *loaded.model;
  TaskResult result;
  result.task = task.name, result.version = task.version, result.task_hash = task.hash, result.data_hash = items.hash;
  result.shots = items.shots, result.limit = options.items.limit, result.strict_spaces = options.items.strict_spaces;
  result.prefix = options.prefix, result.metric = task.metric, result.step = loaded.step;
  result.checkpoint_hash = checkpoint_hash(directory, loaded.step);
  result.device = to_string(model.arena().device()), result.precision = to_string(model.activations());
  const int64_t longest = longest_input(loaded);
  if (longest > 0 && options.max_length > longest)
    throw UsageError("--max-length is " + std::to_string(options.max_length) + ", the model reads " + std::to_string(longest) +
                     " tokens at most");
  result.max_length = options.max_length > 0 ? options.max_length : longest;

  const fs::path folder = directory / kFolder, file = folder / (task.name + "-step-" + std::to_string(loaded.step) + ".json");
  if (!options.again && fs::exists(file))
    if (TaskResult known = read_result(file); key_of(known) == key_of(result)) return known;
  make_run_folder(folder);

  const Requests requests = encode_items(items, *loaded.tokenizer, result);
  std::map<size_t, double> log_likelihoods;
  const PartialScores partial(folder / ("." + task.name + "-step-" + std::to_string(loaded.step) + ".part"), key_of(result),
                              log_likelihoods);
  if (!log_likelihoods.empty() && progress.message)
    progress.message("goes on: " + std::to_string(log_likelihoods.size()) + " of " + std::to_string(requests.encoded.size()) +
                     " requests are scored");
  std::vector<size_t> left;
  for (size_t i = 0; i < requests.encoded.size(); ++i)
    if (!log_likelihoods.contains(i)) left.push_back(i);
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(loaded.config.training));
  score_requests(pass, requests.encoded, left, looks_ahead(loaded.config.architecture) ? Batching::equal : Batching::padded,
                 [&](const std::vector<ScoredRequest>& scored) {
                   require_finite(scored, task.name);
                   partial.add(scored);
                   for (const ScoredRequest& s : scored) log_likelihoods[s.request] = s.log_likelihood;
                   if (progress.done)
                     progress.done(static_cast<double>(log_likelihoods.size()) / static_cast<double>(requests.encoded.size()));
                   return !stop;
                 });
  if (log_likelihoods.size() < requests.encoded.size()) return result;

  for (size_t i = 0; i < items.items.size(); ++i) {
    std::vector<double> own;
    for (size_t r = 0; r < items.items[i].requests.size(); ++r) own.push_back(log_likelihoods.at(requests.first_of_item[i] + r));
    result.items.push_back(score_item(items.items[i], std::move(own)));
  }
  result.cut = std::count_if(requests.encoded.begin(), requests.encoded.end(), [](const EncodedRequest& r) { return r.cut; });
  result.chance = chance_level(items.items);
  result.scores = task_scores(task, result.items);
  replace_text(file, to_json(result).dump() + "\n");
  partial.remove();
  return result;
}

std::vector<TaskResult> read_task_results(const fs::path& directory) {
  std::vector<TaskResult> results;
  if (!fs::is_directory(directory / kFolder)) return results;
  for (const auto& entry : fs::directory_iterator(directory / kFolder))
    if (entry.path().extension() == ".json" && !entry.path().filename().string().starts_with('.'))
      results.push_back(read_result(entry.path()));
  std::sort(results.begin(), results.end(),
            [](const TaskResult& a, const TaskResult& b) { return std::tie(a.task, a.step) < std::tie(b.task, b.step); });
  return results;
}

}  // namespace saccade

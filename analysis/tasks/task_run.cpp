#include "analysis/tasks/task_run.h"

#include "analysis/tasks/stepwise_scoring.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/comparison/look_ahead.h"
#include "analysis/evaluation/evaluation_input.h"
#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/files.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/runs/run_writer.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_run.h"
#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "models/config_text.h"
#include "models/tasks/symbol_task.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFolder = "tasks";
constexpr int64_t kFormat = 2;  ///< 1: `cut` counted choices, not items

/// What decides the scores: two results with the same key are the same.
json key_of(const TaskResult& r) {
  return {{"task", r.task},
          {"version", r.version},
          {"task_hash", r.task_hash},
          {"data_hash", r.data_hash},
          {"shots", r.shots},
          {"limit", r.limit},
          {"strict_spaces", r.strict_spaces},
          {"trim", r.trim},
          {"greedy", r.greedy},
          {"reading", r.reading},
          {"prefix", to_string(r.prefix)},
          {"max_length", r.max_length},
          {"step", r.step},
          {"checkpoint_hash", r.checkpoint_hash},
          {"device", r.device},
          {"precision", r.precision}};
}

/// NaN has no place in JSON.
json number(double value) { return std::isnan(value) ? json() : json(value); }

TaskResult result_of(const json& j) {
  const json& key = j.at("key");
  TaskResult r;
  r.task = key.at("task"), r.task_hash = key.at("task_hash"), r.version = key.at("version"), r.data_hash = key.at("data_hash");
  r.shots = key.at("shots"), r.limit = key.at("limit"), r.strict_spaces = key.at("strict_spaces"), r.max_length = key.at("max_length");
  r.trim = key.value("trim", true), r.greedy = key.value("greedy", false), r.reading = key.value("reading", "");
  r.prefix = parse_prefix(key.at("prefix"));
  r.options = j.value("options", ""), r.partial = j.value("partial", r.limit > 0), r.cut_choices = j.value("format", kFormat) < 2;
  r.step = key.at("step"), r.checkpoint_hash = key.at("checkpoint_hash"), r.device = key.at("device"), r.precision = key.at("precision");
  if (j.contains("made_from")) {
    const json& made = j.at("made_from");
    r.data = made.at("data").get<std::string>(), r.task_file = made.at("task_file").get<std::string>(), r.seed = made.at("seed");
    r.adjectives = made.value("adjectives", ""), r.nouns = made.value("nouns", "");
  }
  r.cut = j.at("cut"), r.chance = j.at("chance"), r.metric = j.at("metric");
  for (const json& s : j.at("scores"))
    r.scores.push_back({s.at("metric"), s.at("value"), number_or_nan(s.at("standard_error")), s.at("items")});
  for (const json& i : j.at("items")) {
    if (i.contains("right")) {
      r.answers.push_back(
          {i.at("answer"), i.at("target"), i.at("right"), i.at("group"), i.at("prompt_tokens"), number_or_nan(i.at("depth"))});
      continue;
    }
    r.items.push_back({i.at("log_likelihoods"), i.at("chosen"), i.at("chosen_norm"), i.at("chosen_bytes"), i.at("gold"), i.at("group")});
    if (i.contains("greedy")) r.items.back().greedy = i.at("greedy").get<std::vector<bool>>();
    if (i.contains("characters")) i.at("characters").get_to(r.items.back().characters), i.at("tokens").get_to(r.items.back().tokens);
  }
  return r;
}

std::string file_name(const std::string& task, int64_t step) {
  if (task.find('/') != task.npos) throw UsageError("\"" + task + "\" is no task's name");
  return task + "-step-" + std::to_string(step);
}

/// What is unlike the task's usual options, as it stands in the file's name.
std::string options_of(const TaskResult& r, const Task& task, const TaskRunOptions& options, int64_t longest) {
  std::string text;
  const auto add = [&](bool is_unusual, const std::string& words) {
    if (is_unusual) text += (text.empty() ? "" : "-") + words;
  };
  const TaskItemOptions usual;
  const bool is_generated = task.kind == Task::Kind::generation && !task.generator.empty();
  add(r.limit > 0, "limit-" + std::to_string(r.limit));
  add(r.shots != task.shots, "shots-" + std::to_string(r.shots));
  add(r.max_length != longest, "max-length-" + std::to_string(r.max_length));
  add(r.prefix != Prefix::none, std::string("prefix-") + to_string(r.prefix));
  add(r.strict_spaces != usual.strict_spaces, "strict-spaces");
  add(r.trim != usual.trim, "no-trim");
  add(r.greedy, "greedy");
  add(r.reading == "stepwise", "stepwise");
  add(is_generated && r.seed != usual.seed, "seed-" + std::to_string(r.seed));
  const bool has_words = !r.adjectives.empty() || !r.nouns.empty();
  add((needs_haystack(task) && !options.data.empty()) || has_words, "text-" + r.data_hash.substr(0, 8));
  return text;
}

TaskScoreRecord record_of(const TaskResult& result) {
  TaskScoreRecord record{result.step, result.task, result.metric, result.chance, result.data_hash, result.checkpoint_hash, {}};
  for (const TaskScore& s : result.scores) record.scores.push_back({s.metric, s.value, s.standard_error, s.items});
  record.options = result.options, record.partial = result.partial, record.limit = result.limit;
  record.shots = result.shots, record.max_length = result.max_length;
  return record;
}

TaskResult read_result(const fs::path& file) {
  try {
    TaskResult result = result_of(read_sealed_json(file));
    result.cached = true;
    return result;
  } catch (const json::exception& error) {
    throw DataError(file.string() + " is damaged (" + std::string(error.what()).substr(0, 120) + ")");
  }
}

// What is found: of a request [log-likelihood, whether greedy], of an item what the model wrote.
bool is_scored_request(const json& found) { return found.is_array() && found.size() == 2 && found[0].is_number() && found[1].is_boolean(); }
bool is_answer_text(const json& found) {
  return found.is_object() && found.value("text", json()).is_string() && found.value("tokens", json()).is_number_integer() &&
         found.value("cut", json()).is_boolean();
}

/// What an evaluation that was stopped has left: a line with the key, then for each request or item a sealed line with its number and what
/// was found of it.
class PartialResults {
 public:
  PartialResults(fs::path file, const json& key, bool (*fits)(const json& found)) : file_(std::move(file)), begin_(key.dump() + "\n") {
    std::string text;
    try {
      text = read_text(file_);
    } catch (const DataError&) {
    }
    size_t at = std::min(text.find('\n'), text.size());
    if (text.substr(0, at) + "\n" != begin_) return;
    begun_ = true;
    for (++at; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == text.npos) break;  // a torn line
      const std::string line = text.substr(at, end - at);
      const json found = seal_holds(line) ? parse_json_or_discard(line) : json();
      if (!found.is_object() || !found.contains("found") || !found.contains("number") || !found["number"].is_number_unsigned()) break;
      if (!fits(found["found"])) break;
      found_[found["number"]] = found["found"];
      at = end + 1;
    }
    if (at < text.size()) replace_text(file_, text.substr(0, at));
  }
  /// The numbers below `all` that are not there yet; `progress` hears how many are.
  std::vector<size_t> left(size_t all, const TaskProgress& progress) const {
    if (!found_.empty() && progress.message)
      progress.message("goes on: " + std::to_string(found_.size()) + " of " + std::to_string(all) + " are done");
    std::vector<size_t> numbers;
    for (size_t i = 0; i < all; ++i)
      if (!found_.contains(i)) numbers.push_back(i);
    return numbers;
  }
  /// The file begins here: what is refused before leaves none.
  void add(const std::vector<std::pair<size_t, json>>& more) {
    if (!begun_) {
      make_run_folder(file_.parent_path());
      replace_text(file_, begin_);
      begun_ = true;
    }
    std::string lines;
    for (const auto& [number, value] : more) {
      std::string line = json{{"number", number}, {"found", value}}.dump(-1, ' ', false, json::error_handler_t::replace);
      line.pop_back();
      lines += sealed(std::move(line)) + "\n";
      found_[number] = value;
    }
    const Descriptor to = open_run_file(file_, O_WRONLY | O_APPEND);
    if (!write_all(to.get(), lines)) throw_file_error("write", file_);
  }
  /// Whether all the numbers below `all` are there.
  bool complete(size_t all) const {
    const auto end = found_.lower_bound(all);
    return static_cast<size_t>(std::distance(found_.begin(), end)) == all;
  }
  const std::map<size_t, json>& found() const { return found_; }
  void remove() const { remove_run_file(file_); }

 private:
  fs::path file_;
  std::string begin_;
  bool begun_ = false;
  std::map<size_t, json> found_;
};

struct Requests {
  std::vector<EncodedRequest> encoded;
  std::vector<size_t> first_of_item;
};
Requests encode_items(const TaskItems& items, const Tokenizer& tokenizer, const TaskResult& result) {
  Requests requests;
  size_t count = 0;
  for (const TaskItem& item : items.items) {
    requests.first_of_item.push_back(count);
    count += item.requests.size();
  }
  requests.encoded.resize(count);
  parallel_for(static_cast<int64_t>(items.items.size()), [&](int64_t n) {
    const auto i = static_cast<size_t>(n);
    for (size_t r = 0; r < items.items[i].requests.size(); ++r) try {
        EncodedRequest& encoded = requests.encoded[requests.first_of_item[i] + r];
        encoded = encode_request(tokenizer, items.items[i].requests[r], result.prefix, result.max_length);
        encoded.item = n;
      } catch (const DataError& error) {
        throw DataError(items.file.string() + ": item " + std::to_string(i + 1) + ": " + error.what());
      }
  });
  return requests;
}

void require_finite(const std::vector<ScoredRequest>& scored, const std::string& task) {
  for (const ScoredRequest& s : scored)
    if (!std::isfinite(s.log_likelihood))
      throw DataError("task " + task + ": the model's log-likelihood of request " + std::to_string(s.request + 1) + " is no number");
}

/// Log-likelihoods of all choices; false when it was stopped.
bool score_choices(LoadedModel& loaded, const Task& task, const TaskItems& items, const TaskRunOptions& options, TaskResult& result,
                   PartialResults& partial, const TaskProgress& progress, const std::atomic<bool>& stop) {
  const Requests requests = encode_items(items, *loaded.tokenizer, result);
  InferenceModel& model = *loaded.model;
  EvaluationPass pass(
      model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, micro_batch_tokens(loaded.config.training));
  const auto all = static_cast<double>(requests.encoded.size());
  const Batching batching = result.reading.empty() ? Batching::padded : Batching::equal;
  const std::vector<size_t> left = partial.left(requests.encoded.size(), progress);
  const auto add = [&](const std::vector<ScoredRequest>& scored) {
    require_finite(scored, task.name);
    std::vector<std::pair<size_t, json>> found;
    for (const ScoredRequest& s : scored) found.emplace_back(s.request, json{s.log_likelihood, s.greedy});
    partial.add(found);
    if (progress.done) progress.done(static_cast<double>(partial.found().size()) / all);
    return !stop;
  };
  if (result.reading == "stepwise")
    score_stepwise(model, requests.encoded, left, result.greedy, add);
  else
    score_requests(pass, requests.encoded, left, {batching, result.greedy, options.shared_contexts}, add);
  if (!partial.complete(requests.encoded.size())) return false;
  for (size_t i = 0; i < items.items.size(); ++i) {
    std::vector<double> own;
    std::vector<bool> greedy;
    std::vector<int64_t> tokens;
    for (size_t r = 0; r < items.items[i].requests.size(); ++r) {
      const json& found = partial.found().at(requests.first_of_item[i] + r);
      own.push_back(found[0]), greedy.push_back(found[1]);
      tokens.push_back(requests.encoded[requests.first_of_item[i] + r].scored);
    }
    result.items.push_back(score_item(items.items[i], std::move(own)));
    result.items.back().tokens = std::move(tokens);
    if (result.greedy) result.items.back().greedy = std::move(greedy);
  }
  std::set<int64_t> cut;  // items, any choice of which lost its beginning
  for (const EncodedRequest& request : requests.encoded)
    if (request.cut) cut.insert(request.item);
  result.cut = static_cast<int64_t>(cut.size());
  result.scores = task_scores(task, result.items);
  return true;
}

/// What the model writes behind every prompt; false when it was stopped.
bool score_answers(LoadedModel& loaded, const Task& task, const TaskItems& items, const TaskRunOptions& options, TaskResult& result,
                   PartialResults& partial, const TaskProgress& progress, const std::atomic<bool>& stop) {
  answer_items(
      loaded, items.items, partial.left(items.items.size(), progress), {result.prefix, result.max_length, task.stop, options.batch},
      [&](size_t i, const Answer& answer) {
        partial.add({{i, json{{"text", answer.text}, {"tokens", answer.prompt_tokens}, {"cut", answer.cut}}}});
        if (progress.done) progress.done(static_cast<double>(partial.found().size()) / static_cast<double>(items.items.size()));
      },
      stop);
  if (!partial.complete(items.items.size())) return false;
  for (size_t i = 0; i < items.items.size(); ++i) {
    const TaskItem& item = items.items[i];
    const json& found = partial.found().at(i);
    AnswerScore score{found.at("text"), item.target, 0, item.group, found.at("tokens")};
    score.right = answer_is_right(task, score.answer, item.target);
    result.cut += found.at("cut").get<bool>();
    result.answers.push_back(std::move(score));
  }
  if (!task.generator.empty())
    parallel_for(static_cast<int64_t>(items.items.size()), [&](int64_t n) {
      const auto i = static_cast<size_t>(n);
      result.answers[i].depth = needle_depth(*loaded.tokenizer, items.items[i]);
    });
  result.scores = answer_scores(task, result.answers);
  return true;
}

/// Examples of a task on symbols.
int64_t samples_of(const TaskRunOptions& options) {
  return options.items.limit > 0 ? std::min(options.items.limit, options.samples) : options.samples;
}

/// What is scored: rows of files, generated prompts, or of a task on symbols only how many there are.
TaskItems items_of(const LoadedModel& loaded, const Task& task, const TaskRunOptions& options) {
  if (task.kind == Task::Kind::symbols) {
    TaskItems items;
    items.hash = task.hash + ":" + std::to_string(samples_of(options)), items.there = kSymbolSamples;
    return items;
  }
  return generate_task_items(task, *loaded.tokenizer, task_haystack(loaded.config, task, options.data), options.items);
}

/// Everything that decides the scores.
TaskResult start_result(const LoadedModel& loaded, const Task& task, const TaskRunOptions& options, const fs::path& directory,
                        const TaskItems& items) {
  TaskResult result;
  result.task = task.name, result.version = task.version, result.task_hash = task.hash;
  result.strict_spaces = options.items.strict_spaces, result.trim = options.items.trim;
  result.greedy = options.greedy && task.kind == Task::Kind::choices;
  result.prefix = options.prefix, result.metric = task.metric, result.step = loaded.step;
  if (task.kind == Task::Kind::choices && !looks_ahead(to_json(loaded.config)).empty()) result.reading = options.reading;
  result.checkpoint_hash = checkpoint_hash(step_file(directory, kCheckpoints, loaded.step));
  result.device = to_string(loaded.model->arena().device()), result.precision = to_string(loaded.model->activations());
  const int64_t longest = longest_read(loaded);
  if (longest > 0 && options.max_length > longest)
    throw UsageError("--max-length is " + std::to_string(options.max_length) + ", the model reads " + std::to_string(longest) +
                     " tokens at most");
  result.max_length = options.max_length > 0 ? options.max_length : longest;
  result.data = options.data.empty() ? fs::path() : fs::absolute(options.data);
  result.task_file = task.own_file, result.seed = options.items.seed;
  const auto words = [](const fs::path& file) { return file.empty() ? fs::path() : fs::absolute(file); };
  result.adjectives = words(options.items.adjectives), result.nouns = words(options.items.nouns);
  const auto taken = task.kind == Task::Kind::symbols ? samples_of(options) : static_cast<int64_t>(items.items.size());
  result.partial = taken < items.there;
  result.limit = taken == items.there ? 0 : taken;
  result.data_hash = items.hash, result.shots = items.shots;
  result.chance =
      task.kind == Task::Kind::symbols ? SymbolDomain(symbol_task(task.generator), task.domain, "--domains").chance() : items.chance;
  result.options = options_of(result, task, options, longest);
  return result;
}

/// A lease of this machine whose process ended before it could give it back. Where that cannot be done it stays, which harms nobody.
void give_back_lease(const fs::path& directory) try {
  if (fs::exists(directory / "lease") && held_here(directory) && !lock_holder(directory)) const RunLock taken_and_given_back(directory);
} catch (const Error&) {
}

/// The scores go into the journal and results.h5, unless they stand there, or a process holds the run: `progress` hears of that, and with
/// `is_old` also of a run that cannot be written. Throws DataError.
fs::path part_of(const fs::path& result) { return result.parent_path() / ("." + result.stem().string() + ".part"); }

void add_to_run(const fs::path& directory, const TaskResult& result, const TaskProgress& progress, bool is_old) try {
  const TaskScoreRecord record = record_of(result);
  const RunHistory history = recorded_history(directory);
  const std::vector<TaskScoreRecord>& known = history.task_scores();
  const bool is_recorded = std::any_of(known.begin(), known.end(), [&](const auto& r) { return to_record(r) == to_record(record); });
  if (is_recorded && results_file_is_current(read_run_info(directory))) return give_back_lease(directory);
  RunWriter writer = RunWriter::take_up(directory, [&](const std::string& line) {
    if (progress.message) progress.message(line);
  });
  if (!is_recorded) writer.add(record);
  writer.write_results();
} catch (const DataError& error) {
  if (!is_old && !lock_holder(directory)) throw;
  if (progress.message) progress.message("the score is in " + (directory / kFolder).string() + " but not in results.h5: " + error.what());
}

}  // namespace

const TaskScore& TaskResult::score() const {
  return *std::find_if(scores.begin(), scores.end(), [&](const TaskScore& s) { return s.metric == metric; });
}

std::string task_haystack(const RunConfig& run, const Task& task, const fs::path& data) {
  if (!needs_haystack(task)) return {};
  if (!data.empty()) return read_haystack(data);
  const DataConfig& config = run.data;
  if (!config.task.empty()) throw UsageError("task " + task.name + " needs --data, a file of running text");
  const Corpus corpus = Corpus::open(config.corpus);
  std::string text;
  corpus.each_document(config.train.front(), Split::test, [&](std::string_view document) {
    text += (text.empty() ? "" : " ") + std::string(document);
    return text.size() < (size_t{1} << 20);
  });
  if (text.empty())
    throw DataError("corpus " + corpus.name() + " has no test text of " + config.train.front() +
                    " to hide a needle in; name a file with --data");
  return text;
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
  for (size_t i = 0; i < r.items.size(); ++i) {
    if (!r.items[i].greedy.empty()) items[i]["greedy"] = r.items[i].greedy;
    if (!r.items[i].characters.empty()) items[i]["characters"] = r.items[i].characters, items[i]["tokens"] = r.items[i].tokens;
  }
  for (const AnswerScore& a : r.answers)
    items.push_back({{"answer", a.answer},
                     {"target", a.target},
                     {"right", a.right},
                     {"group", a.group},
                     {"prompt_tokens", a.prompt_tokens},
                     {"depth", number(a.depth)}});
  return {{"format", r.cut_choices ? 1 : kFormat},
          {"key", key_of(r)},
          {"options", r.options},
          {"partial", r.partial},
          {"cut", r.cut},
          {"chance", r.chance},
          {"metric", r.metric},
          {"scores", scores},
          {"items", items},
          {"made_from",
           {{"data", r.data.string()},
            {"task_file", r.task_file.string()},
            {"seed", r.seed},
            {"adjectives", r.adjectives.string()},
            {"nouns", r.nouns.string()}}}};
}

TaskResult evaluate_task(const fs::path& directory, const Task& task, const TaskRunOptions& options, const TaskProgress& progress,
                         const std::atomic<bool>& stop) {
  const bool from_file = task.kind != Task::Kind::symbols && task.generator.empty();
  TaskItems items = from_file ? read_task_items(task, options.data, options.items) : TaskItems{};
  LoadedModel loaded = load_model(directory, options.checkpoint, options.device);
  use_threads(loaded.config.threads);
  if (!from_file) items = items_of(loaded, task, options);
  TaskResult result = start_result(loaded, task, options, directory, items);

  const fs::path folder = directory / kFolder, file = directory / task_result_file(result), part = part_of(file);
  if (!options.again && fs::exists(file))
    if (TaskResult known = read_result(file); key_of(known) == key_of(result) && !(known.cut_choices && known.cut > 0)) {
      known.options = result.options, known.partial = result.partial, known.chance = result.chance;  // earlier versions said them otherwise
      add_to_run(directory, known, progress, true);
      remove_run_file(part);  // all is done now that a process has left undone that ended behind its result
      return known;
    }
  PartialResults partial(part, key_of(result), task.kind == Task::Kind::generation ? is_answer_text : is_scored_request);
  if (task.kind == Task::Kind::symbols) {
    SymbolScores scored = score_symbols(loaded, task, samples_of(options), progress.done);
    result.scores = std::move(scored.scores), result.answers = std::move(scored.items);
  } else {
    const auto score = task.kind == Task::Kind::generation ? score_answers : score_choices;
    if (!score(loaded, task, items, options, result, partial, progress, stop)) return result;
  }
  make_run_folder(folder);
  write_sealed_json(file, to_json(result));
  add_to_run(directory, result, progress, false);
  partial.remove();  // last: where it stands beside its result, a process has ended before the run had that
  return result;
}

fs::path task_result_file(const TaskResult& result) {
  return fs::path(kFolder) / (file_name(result.task, result.step) + (result.options.empty() ? "" : "-" + result.options) + ".json");
}

bool task_result_is_cut_short(const fs::path& directory, const TaskResult& result) {
  return fs::exists(part_of(directory / task_result_file(result)));
}

std::vector<TaskResult> read_task_results(const fs::path& directory, const std::string& task, int64_t step) {
  const std::string name = file_name(task, step);
  std::vector<TaskResult> results;
  if (!fs::is_directory(directory / kFolder)) return results;
  for (const auto& entry : fs::directory_iterator(directory / kFolder)) {
    const std::string found = entry.path().filename().string();
    if (entry.path().extension() == ".json" && (found == name + ".json" || found.starts_with(name + "-")))
      results.push_back(read_result(entry.path()));
  }
  std::sort(results.begin(), results.end(), [](const TaskResult& a, const TaskResult& b) { return a.options < b.options; });
  return results;
}

TaskResult read_task_result(const fs::path& directory, const std::string& task, int64_t step) {
  std::optional<TaskResult> best;
  for (TaskResult& result : read_task_results(directory, task, step))
    if (!best || is_preferred(record_of(result), record_of(*best))) best = std::move(result);
  if (!best)
    throw DataError((directory / kFolder / (file_name(task, step) + ".json")).string() +
                    " is not there: the items of this score were not kept");
  return std::move(*best);
}

std::vector<TaskResult> read_task_results(const fs::path& directory) {
  std::vector<TaskResult> results;
  if (!fs::is_directory(directory / kFolder)) return results;
  for (const auto& entry : fs::directory_iterator(directory / kFolder))
    if (entry.path().extension() == ".json" && !entry.path().filename().string().starts_with('.'))
      results.push_back(read_result(entry.path()));
  std::sort(results.begin(), results.end(), [](const TaskResult& a, const TaskResult& b) {
    return std::tie(a.task, a.step, a.options) < std::tie(b.task, b.step, b.options);
  });
  return results;
}

}  // namespace saccade

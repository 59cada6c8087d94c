#include "analysis/training/training_run.h"

#include <algorithm>
#include <csignal>
#include <set>

#include "analysis/runs/provenance.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/training/branches.h"
#include "analysis/training/divergence.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_loop.h"
#include "kernels/engine/plain.h"
#include "models/architectures/registry.h"
#include "models/config/old_names.h"
#include "models/corpus/vocabulary.h"
#include "models/suggest.h"
#include "models/training/run_cost.h"
#include "models/training/training_step.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

/// Of the train split of each training domain.
nlohmann::json domain_tokens(const RunConfig& config, const TrainingInput& input) {
  nlohmann::json tokens = nlohmann::json::object();
  for (size_t i = 0; i < input.domain_tokens.size(); ++i) tokens[config.data.train[i]] = input.domain_tokens[i];
  return tokens;
}

/// Where the config leaves training documents out by their length: of each domain, how many are trained on, and of how many.
nlohmann::json documents_taken(const RunConfig& config, const TrainingInput& input) {
  const DocumentFilter filter{config.data.min_document_tokens, config.data.max_document_tokens};
  if (!config.data.task.empty() || (filter.least == 0 && filter.most == 0)) return nullptr;
  nlohmann::json taken = nlohmann::json::object();
  for (const DomainInfo& domain : input.corpus.domains()) {
    if (std::find(config.data.train.begin(), config.data.train.end(), domain.name) == config.data.train.end()) continue;
    const auto store = TokenStore::open(input.corpus, domain.name, Split::train, *input.tokenizer, {}, filter);
    taken[domain.name] = {{"documents", store->document_ends().size()}, {"of", domain.documents.at("train")}};
  }
  return taken;
}

nlohmann::json describe(const RunConfig& config, const TrainingInput& input) {
  const Plan& plan = input.plan;
  const nlohmann::json libraries = library_versions();
  nlohmann::json description = {{"code_version", libraries.value("saccade", SACCADE_VERSION)},
                                {"libraries", libraries},
                                {"device", to_string(input.trainer->device())},
                                {"processor", cpu_name()},
                                {"gpu", gpu_name(input.trainer->device())},
                                {"precision", input.trainer->precision()},
                                {"plain_kernels", plain_kernels()},
                                {"config_hash", config_hash(to_json(config))},
                                {"corpus_hash", input.corpus.hash()},
                                {"tokenizer", input.tokenizer->name()},
                                {"tokenizer_hash", input.tokenizer->hash()},
                                {"vocabulary", input.tokenizer->vocabulary()},
                                {"domain_tokens", domain_tokens(config, input)},
                                {"parameters", input.trainer->model().parameter_count()},
                                {"embedding_parameters", count_embedding_parameters(input.trainer->model())},
                                {"state_bytes_per_token", plan.state_bytes_per_token},
                                {"flops_per_step", plan.flops_per_step},
                                {"planned_peak_bytes", plan.peak_bytes},
                                {"planned_device_bytes", plan.device_bytes()}};
  if (const nlohmann::json taken = documents_taken(config, input); !taken.is_null()) description["documents_taken"] = taken;
  return description;
}

RunInfo make_info(const RunConfig& config, const TrainingInput& input) {
  RunInfo info;
  info.name = config.name;
  info.title = architecture_title(config.architecture);
  info.config = to_json(config);
  info.provenance = describe(config, input);
  info.parameters = input.trainer->model().parameter_count();
  info.seed = config.training.seed;
  info.steps = config.training.steps;
  return info;
}

RunState begin_fork(const RunInfo& parent, bool other_text, Checkpoint start, TrainingInput& input, const fs::path& directory,
                    const RunProgress& progress, const std::atomic<bool>& stop);

/// A cooldown branch of a run at work, started or taken up; with `start`, the state there, it begins with the run's own trainer.
/// `progress` says what happens; the steps are the branch's own.
RunState run_branch(const RunInfo& trunk, TrainingInput& input, int64_t step, const Checkpoint* start, const RunProgress& progress,
                    const std::atomic<bool>& stop) {
  const fs::path directory = branch_directory(trunk.directory, step);
  const RunProgress told{progress.message, {}};
  if (branch_begun(trunk.directory, step)) return resume_run(directory, told, stop, {}, input.ranks);
  const RunConfig config = cooldown_config(input.config, step);
  if (!start) return fork_run({trunk.directory, step}, config, directory, told, stop, input.ranks);
  RunWriter::require_free(directory);
  input.follow(config);
  return begin_fork(trunk, false, *start, input, directory, told, stop);
}

/// Those of the config's, and those that branches begin from.
std::vector<int64_t> kept_steps(const TrainingConfig& training) {
  std::vector<int64_t> kept = steps_of(training.keep_checkpoints, training.steps, "/training/keep_checkpoints");
  for (const int64_t step : cooldown_steps_of(training)) kept.push_back(step);
  return kept;
}

/// Runs the loop behind the step of a good checkpoint, if there is one; an error leaves state `failed` with its message and goes on to the
/// caller.
RunState train(RunWriter& writer, TrainingInput& input, std::optional<int64_t> checkpoint, const RunProgress& progress,
               const std::atomic<bool>& stop) {
  const fs::path directory = writer.info().directory;
  const auto branch = [&](int64_t step, const Checkpoint* start) { return run_branch(writer.info(), input, step, start, progress, stop); };
  if (!writer.lock_note().empty() && progress.message) progress.message(writer.lock_note());
  CheckpointKeeper keeper(directory, checkpoint, kept_steps(input.config.training));
  try {
    return TrainingLoop(writer, input, std::move(keeper), progress, branch).run(stop);
  } catch (const std::exception& error) {
    writer.record_failure(input.trainer ? input.trainer->record().step : writer.info().step, error.what());
    throw;
  }
}

/// The tokenizer a checkpoint was trained with, from what is stored in it.
std::unique_ptr<Tokenizer> stored_tokenizer(const Checkpoint& checkpoint, const fs::path& directory) {
  auto tokenizer = checkpoint.tokenizer_model.empty() ? make_built_in_tokenizer(checkpoint.tokenizer_name)
                                                      : parse_tokenizer(checkpoint.tokenizer_model, checkpoint.tokenizer_name);
  if (!tokenizer || tokenizer->hash() != checkpoint.tokenizer_hash)
    throw DataError(directory.string() + ": the tokenizer stored in the checkpoint of step " +
                    std::to_string(checkpoint.state.record.step) + " is not the one the run was trained with");
  return tokenizer;
}

RunConfig stored_config(const RunInfo& info) try {
  return resolve_config(info.config, (info.directory / "run.json").string());
} catch (const UsageError& error) {
  throw DataError(error.what());  // nobody typed this config: the run's file is not what was written
}

/// The settings that a run may go on with changed: those of the optimizer, on which neither shapes nor data depend.
std::vector<std::string> changeable_settings(const RunConfig& config) {
  std::vector<std::string> names{"learning_rate", "min_lr_ratio", "max_grad_norm", "max_logit_penalty"};
  for (const auto& [name, value] : config.training.optimizer_settings.items()) names.push_back(name);
  return names;
}

nlohmann::json changed_config(const RunInfo& info, const std::vector<std::string>& changes) {
  const RunConfig stored = stored_config(info);
  const nlohmann::json before = to_json(stored), after = to_json(parse_config(before.dump(), "--set", changes));
  const std::vector<std::string> changeable = changeable_settings(stored);
  nlohmann::json others = after;
  for (const std::string& name : changeable) others["training"][name] = before.at("training").at(name);
  if (others == before) return after;
  std::string names;
  for (const std::string& name : changeable) names += (names.empty() ? "training." : ", training.") + name;
  throw UsageError("--set: a run goes on with its model and data; what can be changed is " + names);
}

/// Where a run goes on: at a checkpoint, or at its beginning. `before_loss`: from where what the journal lost can be recorded again.
std::optional<Checkpoint> chosen_checkpoint(const RunInfo& info, const ResumeOptions& options, std::optional<int64_t> before_loss,
                                            const std::function<void(const std::string&)>& report) {
  const bool diverged = info.state == RunState::diverged;
  if (!options.from && !diverged) return newest_checkpoint(info.directory, report, before_loss);
  const int64_t beginning = forked_step(info);
  const int64_t step =
      options.from ? *options.from : course_so_far(info.directory, recorded_history(info.directory)).on_course.value_or(beginning);
  if (step == 0 && beginning == 0) return {};
  const std::vector<int64_t> steps = step_files(info.directory, kCheckpoints);
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return read_checkpoint(step_file(info.directory, kCheckpoints, step));
  std::string names = beginning == 0 ? "0 (the beginning)" : "";
  for (const int64_t s : steps)
    if (s > 0) names += (names.empty() ? "" : ", ") + std::to_string(s);
  throw UsageError("--from " + std::to_string(step) + ": " + info.directory.string() + " has no such checkpoint; it can go on from " +
                   names);
}

/// Throws UsageError for what cannot be asked of a run in this state, DataError for a fork that was killed before it had the checkpoint
/// that it begins from: its initial weights are not where it began.
void check_options(const RunInfo& info, const ResumeOptions& options) {
  if (const int64_t step = forked_step(info); step > 0 && step_files(info.directory, kCheckpoints).empty())
    throw DataError(info.directory.string() + " is a fork that has no checkpoint, not even that of step " + std::to_string(step) +
                    " with which it began; make it again with saccade fork");
  if (options.skip_batch && info.state != RunState::diverged)
    throw UsageError("--skip-batch: " + info.directory.string() + " has not diverged, so there is no batch to pass over");
  if (options.none() && info.state == RunState::diverged)
    throw UsageError(info.directory.string() + " diverged (" + info.message + "), and would again: " + way_back(info.directory));
}

Checkpoint checkpoint_at(const fs::path& directory, int64_t step) {
  if (step > 0) return read_checkpoint(step_file(directory, kCheckpoints, step));
  const std::vector<int64_t> steps = step_files(directory, kCheckpoints);
  if (steps.empty()) throw DataError(directory.string() + " has no checkpoint yet");
  try {
    return read_checkpoint(step_file(directory, kCheckpoints, steps.back()));
  } catch (const DataError& error) {
    std::string others;
    for (size_t i = 0; i + 1 < steps.size(); ++i)
      others += (others.empty() ? "; name an earlier one with --checkpoint: " : ", ") + std::to_string(steps[i]);
    throw DataError("the newest checkpoint is unusable: " + std::string(error.what()) + others);
  }
}

/// Appends "/training/seed is 7, was 1" for every value that differs.
void add_differences(const nlohmann::json& was, const nlohmann::json& is, const std::string& pointer, std::string& text) {
  if (was == is) return;
  if (was.is_object() && is.is_object()) {
    std::set<std::string> keys;
    for (const auto* object : {&was, &is})
      for (const auto& [key, value] : object->items()) keys.insert(key);
    for (const std::string& key : keys)
      add_differences(was.value(key, nlohmann::json()), is.value(key, nlohmann::json()), pointer + "/" + key, text);
    return;
  }
  const auto shown = [](const nlohmann::json& value) { return value.is_null() ? std::string("not given") : value.dump().substr(0, 60); };
  text += (text.empty() ? "" : "; ") + pointer + " is " + shown(is) + ", was " + shown(was);
}

/// The assignments that the run was resumed with (RunWriter::change_config) at this step and since, in their order.
std::vector<std::string> changes_since(const RunInfo& info, int64_t step) try {
  std::vector<std::string> assignments;
  bool since = false;
  for (const nlohmann::json& change : info.provenance.value("changes", nlohmann::json::array())) {
    since = since || change.at("step").get<int64_t>() >= step;  // a later change at an earlier step came after this one
    if (!since) continue;
    for (const nlohmann::json& assignment : change.at("set")) assignments.push_back(assignment);
  }
  return assignments;
} catch (const nlohmann::json::exception&) {
  throw DataError((info.directory / "run.json").string() + " is damaged: /provenance/changes is no list of steps and assignments");
}

/// Throws DataError when run.json has another config than the run was trained with, but for what it was resumed with.
void require_same_config(const RunInfo& info, const Checkpoint* checkpoint) {
  const std::string path = (info.directory / "run.json").string();
  std::string differences;
  if (checkpoint) {
    nlohmann::json trained = checkpoint->config;
    rename_settings(trained);
    fill_old_defaults(trained);
    const std::vector<std::string> changes = changes_since(info, checkpoint->state.record.step);
    if (changes.empty())
      add_differences(trained, info.config, "", differences);
    else
      add_differences(to_json(override_config(trained, path, changes)), to_json(stored_config(info)), "", differences);
  } else if (info.config_edited) {
    differences = "its SHA-256 is not the one of provenance/config_hash";
  }
  if (!differences.empty())
    throw DataError(path + ": the config was changed since the run began (" + differences +
                    "); put it back, or train a new run with the new one");
}

}  // namespace

RunState train_run(const RunConfig& config, const fs::path& directory, const RunProgress& progress, const std::atomic<bool>& stop,
                   const Ranks& ranks) {
  const bool existed = fs::exists(directory);
  RunWriter::require_free(directory);
  std::optional<TrainingInput> input;
  try {
    input = prepare_training(config, progress, ranks);
  } catch (...) {
    std::error_code ignored;
    if (!existed) fs::remove(directory, ignored);  // only an empty one goes
    throw;
  }
  RunWriter writer = RunWriter::create(directory, make_info(config, *input));
  writer.log("training " + writer.info().title + ", " + std::to_string(writer.info().parameters) + " parameters, " +
             std::to_string(config.training.steps) + " steps on " + writer.info().provenance.at("device").get<std::string>() +
             (ranks.count > 1 ? ", " + std::to_string(ranks.count) + " ranks" : ""));
  if (const std::string line = too_many_threads(config.threads); !line.empty()) {
    writer.log(line);
    if (progress.message) progress.message(line);
  }
  if (const std::string why = input->plan.why_not_gpu; !why.empty()) {
    writer.log("the CPU, not the GPU, because: " + why);
    if (progress.message) progress.message("training on the CPU: " + why);
  }
  for (const std::string& op : input->plan.without_tensor_cores) {
    writer.log("slow, for no kernel for tensor cores takes it: " + op);
    if (progress.message) progress.message("slow, for no kernel for tensor cores takes it: " + op);
  }
  const nlohmann::json taken_of = writer.info().provenance.value("documents_taken", nlohmann::json::object());
  for (const auto& [domain, taken] : taken_of.items()) {
    const std::string line = "domain " + domain + ": " + taken.at("documents").dump() + " of " + taken.at("of").dump() +
                             " documents have a length that is trained on";
    writer.log(line);
    if (progress.message) progress.message(line);
  }
  return train(writer, *input, {}, progress, stop);
}

namespace {

/// A process that was killed behind the end of its run has left its lease, which goes when the run is locked once more.
void remove_left_lease(const fs::path& directory) {
  std::error_code none;
  if (fs::exists(directory / "lease", none) && !lock_holder(directory)) const RunLock lock(directory);
}

/// results.h5 of a finished run as the journal says: a process may have ended between the two.
void renew_results(const fs::path& directory, const std::function<void(const std::string&)>& report, bool take_over) {
  if (results_file_is_current(read_run_info(directory))) return remove_left_lease(directory);
  RunWriter writer = RunWriter::take_up(directory, report, take_over);
  writer.write_results();
  writer.log("results.h5 was not what the journal says and was written again");
  report((directory / "results.h5").string() + " was not what the journal says and was written again");
}

void require_same_corpus(const RunInfo& info, const Corpus& corpus) {
  const std::string expected = info.provenance.value("corpus_hash", "");
  if (corpus.hash() != expected)
    throw DataError(info.directory.string() + ": corpus " + corpus.name() + " has changed since the run began (" +
                    corpus.hash().substr(0, 12) + ", expected " + expected.substr(0, 12) + "), so it cannot go on as it would have");
}

}  // namespace

RunState resume_run(const fs::path& directory, const RunProgress& progress, const std::atomic<bool>& stop, const ResumeOptions& options,
                    const Ranks& ranks) {
  std::vector<std::string> reports;
  const auto report = [&](const std::string& line) {
    reports.push_back(line);
    if (progress.message) progress.message(line);
  };
  if (read_run_info(directory).state == RunState::finished && Run(directory).damage().empty()) {
    renew_results(directory, report, options.take_over);
    return RunState::finished;
  }
  RunWriter writer = RunWriter::take_up(directory, report, options.take_over, &stop);
  if (!writer.info().old_names.empty()) report(writer.info().old_names);
  check_options(writer.info(), options);
  const nlohmann::json changed = options.changes.empty() ? nlohmann::json() : changed_config(writer.info(), options.changes);
  const auto before_loss = writer.step_before_loss(step_files(directory, kCheckpoints));
  const std::optional<Checkpoint> checkpoint = chosen_checkpoint(writer.info(), options, before_loss, report);
  const int64_t step = checkpoint ? checkpoint->state.record.step : 0;
  const bool repeats = before_loss && step <= *before_loss;
  if (repeats)
    report("goes back to the checkpoint of step " + std::to_string(step) + ", from which what the journal lost is recorded again");
  for (const std::string& line : reports) writer.log(line);
  require_same_config(writer.info(), checkpoint ? &*checkpoint : nullptr);
  const RunConfig config = changed.is_null() ? stored_config(writer.info()) : resolve_config(changed, "--set");
  const uint64_t bad_batch = options.skip_batch ? diverged_position(directory, writer.info().step) : 0;
  TrainingInput input = prepare_training(config, progress, ranks, checkpoint ? stored_tokenizer(*checkpoint, directory) : nullptr);
  require_same_corpus(writer.info(), input.corpus);
  if (checkpoint) input.trainer->restore(checkpoint->state);
  if (checkpoint) input.choices = checkpoint->choices;
  const bool went_back = options.from || writer.info().state == RunState::diverged;
  if (went_back || repeats) writer.give_up_behind(step);  // first: those have the config from before a change
  if (!changed.is_null()) writer.change_config(step, changed, options.changes);
  if (options.skip_batch) writer.skip_batch(bad_batch);
  input.trainer->skip(skipped_positions(writer.info()));
  writer.resume_at(!checkpoint && config.training.evaluate_at_start ? -1 : step);  // what was recorded at step 0 is recorded again
  writer.log(checkpoint  ? "resumed from the checkpoint of step " + std::to_string(step)
             : went_back ? "started again from its initial weights"
                         : "started again: it had ended before its first checkpoint");
  return train(writer, input, checkpoint ? std::optional(step) : std::nullopt, progress, stop);
}

namespace {

/// Whether the sequences of a config come in another order, or are others, than those of its parent.
bool other_text(const RunConfig& config, const RunConfig& parent) {
  nlohmann::json now = data_schema.write(config.data), before = data_schema.write(parent.data);
  for (nlohmann::json* data : {&now, &before}) data->erase("ood");
  return now != before || config.training.seed != parent.training.seed;
}

int64_t fork_step(const Fork& fork) {
  const std::vector<int64_t> steps = step_files(fork.parent, kCheckpoints);
  if (steps.empty()) throw UsageError(fork.parent.string() + " has no checkpoint yet");
  if (fork.step == 0) return steps.back();
  if (std::find(steps.begin(), steps.end(), fork.step) != steps.end()) return fork.step;
  std::vector<std::string> names;
  for (const int64_t s : steps) names.push_back(std::to_string(s));
  throw UsageError("step " + std::to_string(fork.step) + ": " + fork.parent.string() + " has checkpoints of step " + alternatives(names));
}

}  // namespace

RunConfig fork_config(const Fork& fork) {
  const RunInfo parent = read_run_info(fork.parent);
  const int64_t step = fork_step(fork);
  nlohmann::json stored = parent.config;
  stored["name"] = parent.config.value("name", parent.name) + ", fork of step " + std::to_string(step);
  RunConfig config = override_config(std::move(stored), (fork.parent / "run.json").string(), fork.overrides);
  if (config.training.steps <= step)
    throw UsageError("/training/steps is " + std::to_string(config.training.steps) + "; expected more than the " + std::to_string(step) +
                     " steps that the parent has done there");
  return config;
}

RunState fork_run(const Fork& fork, const RunConfig& config, const fs::path& directory, const RunProgress& progress,
                  const std::atomic<bool>& stop, const Ranks& ranks) {
  const bool existed = fs::exists(directory);
  const RunInfo parent = read_run_info(fork.parent);
  Checkpoint checkpoint = read_checkpoint(step_file(fork.parent, kCheckpoints, fork_step(fork)));
  auto tokenizer = stored_tokenizer(checkpoint, fork.parent);
  const RunConfig before = stored_config(parent);
  if (config.data.tokenizer != before.data.tokenizer)
    throw UsageError("a fork keeps its parent's tokenizer, but data.tokenizer is " + config.data.tokenizer + ", was " +
                     before.data.tokenizer);
  require_same_model(config, checkpoint, padded_vocabulary(tokenizer->vocabulary(), config.data.vocabulary_multiple));
  RunWriter::require_free(directory);
  std::optional<TrainingInput> input;
  try {
    input = prepare_training(config, progress, ranks, std::move(tokenizer));
    const bool same_task = config.data.task == before.data.task && (config.data.task.empty() || config.data.train == before.data.train);
    if (same_task && config.data.corpus == before.data.corpus && input->corpus.hash() != checkpoint.corpus_hash)
      throw DataError("corpus " + input->corpus.name() + " has changed since the parent began; a fork could not go on in its text");
  } catch (...) {
    std::error_code ignored;
    if (!existed) fs::remove(directory, ignored);
    throw;
  }
  return begin_fork(parent, other_text(config, before), std::move(checkpoint), *input, directory, progress, stop);
}

namespace {

/// In a free directory, with what is prepared for the fork's config; `start` is the parent's checkpoint.
RunState begin_fork(const RunInfo& parent, bool other_text, Checkpoint start, TrainingInput& input, const fs::path& directory,
                    const RunProgress& progress, const std::atomic<bool>& stop) {
  if (other_text) start.state.data_position = 0;
  const std::vector<uint64_t> skipped = other_text ? std::vector<uint64_t>() : skipped_positions(parent);
  input.trainer->skip(skipped);
  input.trainer->restore(start.state);
  const int64_t step = start.state.record.step;
  RunInfo info = make_info(input.config, input);
  if (!skipped.empty()) info.provenance["skipped_positions"] = skipped;
  info.provenance["parent"] = {{"path", fs::absolute(parent.directory).lexically_normal().string()},
                               {"name", parent.name},
                               {"config_hash", parent.provenance.value("config_hash", "")},
                               {"step", step},
                               {"checkpoint_sha256", checkpoint_hash(step_file(parent.directory, kCheckpoints, step))}};
  RunWriter writer = RunWriter::create(directory, std::move(info));
  writer.log("fork of " + parent.directory.string() + " at step " + std::to_string(step) +
             (other_text ? ", from the beginning of other text" : ", on in the parent's text"));
  start.config = writer.info().config;
  start.corpus_hash = input.corpus.hash();
  start.choices.clear();  // those of a run that may have been probed on other text
  input.choices.clear();
  writer.require();
  write_checkpoint(step_file(directory, kCheckpoints, step), start);  // so that it can be resumed before it has written its own
  return train(writer, input, step, progress, stop);
}

}  // namespace

bool is_live(const fs::path& directory) { return lock_holder(directory).has_value(); }

bool stop_run(const fs::path& directory) {
  const auto holder = lock_holder(directory);
  if (!holder || holder->process <= 0) return false;
  if (holder->host != host_name() || holder->elsewhere)
    throw DataError(directory.string() + " is trained by process " + std::to_string(holder->process) + " on " + holder->host +
                    "; stop it there");
  return ::kill(holder->process, SIGTERM) == 0;
}

int64_t LoadedModel::rows() const { return padded_vocabulary(tokenizer->vocabulary(), config.data.vocabulary_multiple); }

LoadedModel load_model(const fs::path& directory, int64_t step, const std::string& device) {
  const RunInfo info = read_run_info(directory);
  const Checkpoint checkpoint = checkpoint_at(directory, step);
  require_same_config(info, &checkpoint);
  LoadedModel loaded{stored_config(info), checkpoint.state.record.step, checkpoint.corpus_hash, stored_tokenizer(checkpoint, directory),
                     nullptr};
  RunConfig& config = loaded.config;
  if (!device.empty()) config.device = device;
  const int64_t vocabulary = loaded.rows();
  loaded.model =
      std::make_unique<InferenceModel>(config.architecture, vocabulary, config.data.sequence_length, run_device(config, vocabulary),
                                       config.precision, static_cast<uint64_t>(config.training.seed));
  loaded.model->choose_below(loaded.tokenizer->vocabulary());
  loaded.model->load(checkpoint.state.weights);
  return loaded;
}

}  // namespace saccade

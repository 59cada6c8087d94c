#include "analysis/training/training_run.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "analysis/runs/provenance.h"
#include "analysis/runs/run_info.h"
#include "analysis/training/divergence.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_loop.h"
#include "kernels/engine/plain.h"
#include "models/architectures/registry.h"
#include "models/training/training_step.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

nlohmann::json describe(const RunConfig& config, const TrainingInput& input) {
  const Plan& plan = input.plan;
  const nlohmann::json libraries = library_versions();
  return {{"code_version", libraries.value("saccade", SACCADE_VERSION)},
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
          {"parameters", input.trainer->model().parameter_count()},
          {"state_bytes_per_token", plan.state_bytes_per_token},
          {"flops_per_step", plan.flops_per_step},
          {"planned_peak_bytes", plan.peak_bytes}};
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

/// Runs the loop; an error leaves state `failed` with its message and goes on to the caller.
RunState train(RunWriter& writer, TrainingInput& input, CheckpointKeeper keeper, const RunProgress& progress,
               const std::atomic<bool>& stop) {
  try {
    return TrainingLoop(writer, input, std::move(keeper), progress).run(stop);
  } catch (const std::exception& error) {
    writer.record_failure(input.trainer->state().record.step, error.what());
    throw;
  }
}

/// The tokenizer a checkpoint was trained with, from what is stored in it.
std::unique_ptr<Tokenizer> stored_tokenizer(const Checkpoint& checkpoint, const fs::path& directory) {
  auto tokenizer = checkpoint.tokenizer_model.empty() ? make_byte_tokenizer()
                                                      : parse_sentencepiece(checkpoint.tokenizer_model, checkpoint.tokenizer_name);
  if (tokenizer->hash() != checkpoint.tokenizer_hash)
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
constexpr std::array kChangeable{"learning_rate", "min_lr_ratio", "weight_decay",  "beta1",
                                 "beta2",         "epsilon",      "max_grad_norm", "max_logit_penalty"};

nlohmann::json changed_config(const RunInfo& info, const std::vector<std::string>& changes) {
  const nlohmann::json before = to_json(stored_config(info)), after = to_json(parse_config(before.dump(), "--set", changes));
  nlohmann::json others = after;
  for (const char* name : kChangeable) others["training"][name] = before["training"][name];
  if (others == before) return after;
  std::string names;
  for (const char* name : kChangeable) names += (names.empty() ? "training." : ", training.") + std::string(name);
  throw UsageError("--set: a run goes on with its model and data; what can be changed is " + names);
}

/// Where a run goes on: at a checkpoint, or at its beginning.
std::optional<Checkpoint> chosen_checkpoint(const RunInfo& info, const ResumeOptions& options,
                                            const std::function<void(const std::string&)>& report) {
  const bool diverged = info.state == RunState::diverged;
  if (!options.from && !diverged) return newest_checkpoint(info.directory, report);
  const int64_t step = options.from ? *options.from : course_so_far(info.directory).on_course.value_or(0);
  if (step == 0) return {};
  const std::vector<int64_t> steps = step_files(info.directory, kCheckpoints);
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return read_checkpoint(step_file(info.directory, kCheckpoints, step));
  std::string names = "0 (the beginning)";
  for (const int64_t s : steps) names += ", " + std::to_string(s);
  throw UsageError("--from " + std::to_string(step) + ": " + info.directory.string() + " has no such checkpoint; it can go on from " +
                   names);
}

/// Throws UsageError for what cannot be asked of a run in this state.
void check_options(const RunInfo& info, const ResumeOptions& options) {
  if (options.skip_batch && info.state != RunState::diverged)
    throw UsageError("--skip-batch: " + info.directory.string() + " has not diverged, so there is no batch to pass over");
  if (options.none() && info.state == RunState::diverged)
    throw UsageError(info.directory.string() + " diverged (" + info.message + "), and would again: " + way_back(info.directory));
}

Checkpoint checkpoint_at(const fs::path& directory, int64_t step) {
  if (step > 0) return read_checkpoint(step_file(directory, kCheckpoints, step));
  if (auto newest = newest_checkpoint(directory, [](const std::string&) {})) return std::move(*newest);
  throw DataError(directory.string() + " has no checkpoint yet");
}

}  // namespace

RunState train_run(const RunConfig& config, const fs::path& directory, const RunProgress& progress, const std::atomic<bool>& stop) {
  const bool existed = fs::exists(directory);
  RunWriter::require_free(directory);
  std::optional<TrainingInput> input;
  try {
    input = prepare_training(config, progress);
  } catch (...) {
    std::error_code ignored;
    if (!existed) fs::remove(directory, ignored);  // only an empty one goes
    throw;
  }
  RunWriter writer = RunWriter::create(directory, make_info(config, *input));
  writer.log("training " + writer.info().title + ", " + std::to_string(writer.info().parameters) + " parameters, " +
             std::to_string(config.training.steps) + " steps on " + writer.info().provenance.at("device").get<std::string>());
  if (const std::string line = too_many_threads(config.threads); !line.empty()) {
    writer.log(line);
    if (progress.message) progress.message(line);
  }
  if (const std::string why = input->plan.why_not_gpu; !why.empty()) {
    writer.log("the CPU, not the GPU, because: " + why);
    if (progress.message) progress.message("training on the CPU: " + why);
  }
  return train(writer, *input, CheckpointKeeper(directory), progress, stop);
}

RunState resume_run(const fs::path& directory, const RunProgress& progress, const std::atomic<bool>& stop, const ResumeOptions& options) {
  if (read_run_info(directory).state == RunState::finished) return RunState::finished;
  std::vector<std::string> reports;
  const auto report = [&](const std::string& line) {
    reports.push_back(line);
    if (progress.message) progress.message(line);
  };
  RunWriter writer = RunWriter::take_up(directory, report);
  if (!writer.info().old_names.empty()) report(writer.info().old_names);
  check_options(writer.info(), options);
  const nlohmann::json changed = options.changes.empty() ? nlohmann::json() : changed_config(writer.info(), options.changes);
  const std::optional<Checkpoint> checkpoint = chosen_checkpoint(writer.info(), options, report);
  for (const std::string& line : reports) writer.log(line);
  const RunConfig config = changed.is_null() ? stored_config(writer.info()) : resolve_config(changed, "--set");
  const uint64_t bad_batch = options.skip_batch ? diverged_position(directory, writer.info().step) : 0;
  TrainingInput input = prepare_training(config, progress, checkpoint ? stored_tokenizer(*checkpoint, directory) : nullptr);
  const std::string expected = writer.info().provenance.value("corpus_hash", "");
  if (input.corpus.hash() != expected)
    throw DataError(directory.string() + ": corpus " + input.corpus.name() + " has changed since the run began (" +
                    input.corpus.hash().substr(0, 12) + ", expected " + expected.substr(0, 12) + "), so it cannot go on as it would have");
  if (checkpoint) input.trainer->restore(checkpoint->state);
  const int64_t step = checkpoint ? checkpoint->state.record.step : 0;
  if (!changed.is_null()) writer.change_config(step, changed, options.changes);
  if (options.skip_batch) writer.skip_batch(bad_batch);
  input.trainer->skip(writer.info().provenance.value("skipped_positions", std::vector<uint64_t>()));
  const bool went_back = options.from || writer.info().state == RunState::diverged;
  if (went_back) writer.give_up_behind(step);
  writer.resume_at(step);
  writer.log(checkpoint  ? "resumed from the checkpoint of step " + std::to_string(step)
             : went_back ? "started again from its initial weights"
                         : "started again: it had ended before its first checkpoint");
  return train(writer, input, CheckpointKeeper(directory, checkpoint ? std::optional(step) : std::nullopt), progress, stop);
}

bool is_live(const fs::path& directory) { return lock_holder(directory).has_value(); }

bool stop_run(const fs::path& directory) {
  const auto holder = lock_holder(directory);
  if (!holder || holder->process <= 0) return false;
  if (holder->host != host_name())
    throw DataError(directory.string() + " is trained by process " + std::to_string(holder->process) + " on " + holder->host +
                    "; stop it there");
  return ::kill(holder->process, SIGTERM) == 0;
}

LoadedModel load_model(const fs::path& directory, int64_t step, const std::string& device) {
  const RunInfo info = read_run_info(directory);
  const Checkpoint checkpoint = checkpoint_at(directory, step);
  LoadedModel loaded{stored_config(info), checkpoint.state.record.step, checkpoint.corpus_hash, stored_tokenizer(checkpoint, directory),
                     nullptr};
  RunConfig& config = loaded.config;
  if (!device.empty()) config.device = device;
  const int64_t vocabulary = loaded.tokenizer->vocabulary();
  loaded.model =
      std::make_unique<InferenceModel>(config.architecture, vocabulary, config.data.sequence_length, run_device(config, vocabulary),
                                       config.precision, static_cast<uint64_t>(config.training.seed));
  loaded.model->load(checkpoint.state.weights);
  return loaded;
}

}  // namespace saccade

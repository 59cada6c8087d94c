#include "analysis/training/training_run.h"

#include <csignal>

#include "analysis/runs/provenance.h"
#include "analysis/runs/run_info.h"
#include "analysis/training/training_loop.h"
#include "kernels/engine/plain.h"
#include "models/architectures/registry.h"

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
          {"domain_tokens", input.domain_tokens},
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
  if (const std::string why = input->plan.why_not_gpu; !why.empty()) {
    writer.log("the CPU, not the GPU, because: " + why);
    if (progress.message) progress.message("training on the CPU: " + why);
  }
  return train(writer, *input, CheckpointKeeper(directory), progress, stop);
}

RunState resume_run(const fs::path& directory, const RunProgress& progress, const std::atomic<bool>& stop) {
  if (read_run_info(directory).state == RunState::finished) return RunState::finished;
  std::vector<std::string> reports;
  const auto report = [&](const std::string& line) {
    reports.push_back(line);
    if (progress.message) progress.message(line);
  };
  RunWriter writer = RunWriter::take_up(directory, report);
  if (!writer.info().old_names.empty()) report(writer.info().old_names);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(directory, report);
  for (const std::string& line : reports) writer.log(line);
  const RunConfig config = stored_config(writer.info());
  TrainingInput input = prepare_training(config, progress, checkpoint ? stored_tokenizer(*checkpoint, directory) : nullptr);
  const std::string expected = writer.info().provenance.value("corpus_hash", "");
  if (input.corpus.hash() != expected)
    throw DataError(directory.string() + ": corpus " + input.corpus.name() + " has changed since the run began (" +
                    input.corpus.hash().substr(0, 12) + ", expected " + expected.substr(0, 12) + "), so it cannot go on as it would have");
  if (checkpoint) input.trainer->restore(checkpoint->state);
  const int64_t step = checkpoint ? checkpoint->state.record.step : 0;
  writer.resume_at(!checkpoint && config.training.evaluate_at_start ? -1 : step);  // what was recorded at step 0 is recorded again
  writer.log(checkpoint ? "resumed from the checkpoint of step " + std::to_string(step)
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

#pragma once
#include "analysis/runs/run.h"

namespace saccade {

/// run.json of a run directory. Old names and old defaults of settings are read as today's, and the config's hash in the provenance
/// is then that of the config as read, so that equal configs stay equal. Reading throws DataError naming the file; the state is the one
/// recorded last, `crashed` is for those to find who look at the lock.
RunInfo read_run_info(const std::filesystem::path& directory);
void write_run_info(const RunInfo& info);

/// What the provenance says of a resolved config: SHA-256 of its text, as hexadecimal digits.
std::string config_hash(const nlohmann::json& resolved);

/// The step of the parent's checkpoint that a fork began from; 0 for a run that is no fork. Throws DataError.
int64_t forked_step(const RunInfo& info);
/// Of a run on a generated task its name, "mqar"; empty for one on text. Throws DataError.
std::string training_task(const RunInfo& info);
/// Data positions of the batches that `saccade resume --skip-batch` passes over. Throws DataError.
std::vector<uint64_t> skipped_positions(const RunInfo& info);

/// When run.json was written last, as utc_now() says it; empty where it cannot be read.
std::string last_written(const std::filesystem::path& directory);

bool holds_run(const std::filesystem::path& directory);
/// There was a run at least: a journal, if no run.json.
bool looks_like_run(const std::filesystem::path& directory);

/// "…/checkpoints/step-500.h5", and the steps for which such files exist, ascending.
std::filesystem::path step_file(const std::filesystem::path& directory, const char* kind, int64_t step);
std::vector<int64_t> step_files(const std::filesystem::path& directory, const char* kind);

inline constexpr const char* kCheckpoints = "checkpoints";
inline constexpr const char* kCaptures = "captures";
inline constexpr const char* kEvaluations = "evaluations";  ///< of a run at its end, step-500.validation.json; of a study, RUN.test.262144.json

/// "2026-11-20T10:58:03Z"
std::string utc_now();

}  // namespace saccade

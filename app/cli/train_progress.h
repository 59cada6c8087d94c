#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "analysis/training/training_run.h"

namespace saccade::cli {

/// Runs `work` with a progress display and with SIGINT, SIGTERM and SIGUSR2 meaning "checkpoint, then stop".
RunState watch_training(const std::string& label, int64_t steps, const std::function<RunState(const RunProgress&)>& work);

/// Says how it ended; the exit code: 0 finished, 1 diverged, 130 stopped by a signal, 75 by SIGUSR2: to be continued.
int finish_training(const std::filesystem::path& directory, RunState state);

}  // namespace saccade::cli

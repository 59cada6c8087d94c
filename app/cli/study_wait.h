#pragma once
#include <filesystem>
#include <vector>

#include "analysis/studies/queue.h"

namespace saccade::cli {

/// Until nothing of a study that stands in these queues is left to do (0), or the user has enough of waiting (130): the queues then go on
/// by themselves. Where nothing begins for a few seconds it says what it waits for, and a queue that nobody works off gets its worker
/// again. Throws Error where nothing more is started, the study has left the queues, or their workers cannot be started or end again and
/// again; the message names their logs.
int wait_for_study(const std::filesystem::path& study, const std::vector<DeviceQueue>& queues);

}  // namespace saccade::cli

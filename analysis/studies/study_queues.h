#pragma once
#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_workers.h"

namespace saccade {

/// Devices that a study's runs are spread over: "all" for every GPU of this machine, or such as "cuda:0-3", "cuda:1,cuda:3", "cpu". Throws
/// UsageError, and DeviceError where a GPU is not there.
std::vector<std::string> parse_devices(const std::string& text);

/// The queues that a study's runs go to: those of the devices it was spread over (StudyState::devices), else that of its configs' device.
std::vector<DeviceQueue> queues_of(const StudyView& view);

/// Who evaluates and scores a study's runs: a process for each of the runs at a time that its queues have, on their devices; `devices` and
/// `jobs` in place of those, where they are not empty (parse_devices, parse_jobs). kJobsAsPays is a process for each core, of a GPU one.
/// Devices of the study that this machine lacks are passed over: where none is left, and none was named, the runs' own are taken, one run
/// after the other. Throws UsageError, DeviceError.
StudyWorkers workers_of(const StudyView& view, const std::string& devices, const std::string& jobs);

}  // namespace saccade

#pragma once
#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"

namespace saccade {

/// Devices that a study's runs are spread over: "all" for every GPU of this machine, or such as "cuda:0-3", "cuda:1,cuda:3", "cpu". Throws
/// UsageError, and DeviceError where a GPU is not there.
std::vector<std::string> parse_devices(const std::string& text);

/// The queues that a study's runs go to: those of the devices it was spread over (StudyState::devices), else that of its configs' device.
std::vector<DeviceQueue> queues_of(const StudyView& view);

}  // namespace saccade

#pragma once
#include <cstdint>
#include <optional>

namespace saccade::cuda {

/// Free memory of a GPU in bytes as the driver's management library (NVML) tells it. Asking the CUDA runtime instead makes
/// a context on that GPU, which takes some hundred MiB of it for as long as the program runs. Empty where there is no NVML.
std::optional<int64_t> nvml_free_memory(const char* pci_bus_id);

}  // namespace saccade::cuda

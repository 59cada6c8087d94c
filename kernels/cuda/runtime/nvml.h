#pragma once
#include <cstdint>
#include <optional>

namespace saccade::cuda {

/// Free memory of a GPU in bytes, from the driver's management library (NVML). The CUDA runtime's own query would create a context on that
/// GPU, some hundred MiB for as long as the program runs. Empty where there is no NVML.
std::optional<int64_t> nvml_free_memory(const char* pci_bus_id);

}  // namespace saccade::cuda

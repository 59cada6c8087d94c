#include "kernels/cuda/runtime/nvml.h"

#ifdef SACCADE_CUDA
#include <dlfcn.h>

namespace saccade::cuda {
namespace {

// NVML comes with the driver, its header not with every toolkit: the few declarations that are needed, as NVIDIA's NVML API
// reference gives them. Every function answers 0 for success.
struct Memory {
  unsigned long long total, free, used;
};
struct Nvml {
  int (*init)() = nullptr;
  int (*handle_by_pci_bus_id)(const char*, void**) = nullptr;
  int (*memory_info)(void*, Memory*) = nullptr;
  bool usable = false;

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return;
    load(library, "nvmlInit_v2", init);
    load(library, "nvmlDeviceGetHandleByPciBusId_v2", handle_by_pci_bus_id);
    load(library, "nvmlDeviceGetMemoryInfo", memory_info);
    usable = init && handle_by_pci_bus_id && memory_info && init() == 0;
  }
  template <class F>
  static void load(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
  }
};

}  // namespace

std::optional<int64_t> nvml_free_memory(const char* pci_bus_id) {
  static const Nvml nvml;
  void* device = nullptr;
  Memory memory{};
  if (!nvml.usable || nvml.handle_by_pci_bus_id(pci_bus_id, &device) != 0 || nvml.memory_info(device, &memory) != 0) return {};
  return static_cast<int64_t>(memory.free);
}

}  // namespace saccade::cuda
#endif

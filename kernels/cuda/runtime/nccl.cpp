// NCCL, found when ranks on GPUs first send each other something: the program starts on machines without it. Its header does not come with
// the CUDA Toolkit, so the few declarations that are needed stand here, as NVIDIA's NCCL API reference gives them (2.18 and newer).
#include "kernels/engine/gpu_communicator.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"
#endif

namespace saccade {

#ifndef SACCADE_CUDA

std::string nccl_version(std::string* why_none) {
  if (why_none) *why_none = "this build was made without CUDA";
  return {};
}

std::unique_ptr<Communicator> with_gpus(std::unique_ptr<Communicator> host) { return host; }

#else
namespace {

using Comm = struct ncclComm*;
struct UniqueId {
  char internal[128];
};
constexpr int kSuccess = 0, kInt8 = 0, kOldest = 21800;

struct Nccl {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*comm_init_rank)(Comm*, int, UniqueId, int) = nullptr;
  int (*comm_destroy)(Comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*recv)(void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  const char* (*error_string)(int) = nullptr;
  std::string why;  ///< it cannot be used; empty: it can
  int version = 0;

  Nccl() {
    const char* given = std::getenv("SACCADE_NCCL");
    const std::string name = given ? given : "libnccl.so.2";
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      why = "several GPUs need NCCL's " + name + " where the system looks for libraries, or its path in SACCADE_NCCL" +
            (reason ? std::string(": ") + reason : "");
      return;
    }
    find(library, "ncclGetVersion", get_version);
    find(library, "ncclGetUniqueId", get_unique_id);
    find(library, "ncclCommInitRank", comm_init_rank);
    find(library, "ncclCommDestroy", comm_destroy);
    find(library, "ncclGroupStart", group_start);
    find(library, "ncclGroupEnd", group_end);
    find(library, "ncclSend", send);
    find(library, "ncclRecv", recv);
    find(library, "ncclGetErrorString", error_string);
    if (why.empty() && (get_version(&version) != kSuccess || version < kOldest))
      why = name + " is version " + text(version) + ", expected 2.18 or newer";
  }
  template <class F>
  void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function) why = std::string("libnccl has no ") + name;
  }
  static std::string text(int version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }
};

const Nccl& nccl() {
  static const Nccl library;
  return library;
}

void check_nccl(int status, const char* call) {
  if (status != kSuccess) throw DeviceError(std::string("NCCL's ") + call + " failed: " + nccl().error_string(status));
}

class GpuCommunicator : public Communicator {
 public:
  explicit GpuCommunicator(std::unique_ptr<Communicator> host) : Communicator(host->rank(), host->size()), host_(std::move(host)) {}
  ~GpuCommunicator() override {
    // After an error the others may not come: what is left then ends with the process.
    if (comm_ && cudaStreamQuery(cuda::stream(index_)) == cudaSuccess) (void)nccl().comm_destroy(comm_);
  }

  void all_to_all(Device device, const Parts& send, const Parts& receive) override {
    if (!device.is_cuda()) return host_->all_to_all(device, send, receive);
    if (!comm_) join(device.index);
    const cuda::Stream stream = cuda::stream(device.index);
    check_nccl(nccl().group_start(), "ncclGroupStart");
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      for (const Tensor& x : send[static_cast<size_t>(r)])
        check_nccl(nccl().send(x.raw(), static_cast<size_t>(x.bytes()), kInt8, r, comm_, stream), "ncclSend");
      for (const Tensor& x : receive[static_cast<size_t>(r)])
        check_nccl(nccl().recv(x.raw(), static_cast<size_t>(x.bytes()), kInt8, r, comm_, stream), "ncclRecv");
    }
    check_nccl(nccl().group_end(), "ncclGroupEnd");
  }
  std::string broadcast(const std::string& bytes) override { return host_->broadcast(bytes); }
  bool any(bool here) override { return host_->any(here); }

 private:
  void join(int index) {
    if (!nccl().why.empty()) throw DeviceError(nccl().why);
    UniqueId id{};
    if (rank() == 0) check_nccl(nccl().get_unique_id(&id), "ncclGetUniqueId");
    const std::string bytes = host_->broadcast(std::string(id.internal, sizeof id.internal));
    std::copy(bytes.begin(), bytes.end(), id.internal);
    index_ = index;
    cuda::check(cudaSetDevice(index));
    check_nccl(nccl().comm_init_rank(&comm_, size(), id, rank()), "ncclCommInitRank");
  }

  std::unique_ptr<Communicator> host_;
  Comm comm_ = nullptr;
  int index_ = 0;
};

}  // namespace

std::string nccl_version(std::string* why_none) {
  if (nccl().why.empty()) return Nccl::text(nccl().version);
  if (why_none) *why_none = nccl().why;
  return {};
}

std::unique_ptr<Communicator> with_gpus(std::unique_ptr<Communicator> host) { return std::make_unique<GpuCommunicator>(std::move(host)); }

#endif

}  // namespace saccade

#pragma once
#include <memory>
#include <string>

#include "kernels/engine/communicator.h"

namespace saccade {

/// What is on GPUs goes over NCCL, all else over `host`. NCCL (2.18 or newer, libnccl.so.2) is loaded, and its ranks are joined, when
/// something on a GPU is first sent; then the calls throw DeviceError where it cannot be had or fails. NCCL's settings are the
/// environment's. Its sends and receives are grouped, all of a call together; nothing is reduced and no multicast is asked for.
/// A rank that is lost is found out by `host`: what waits for it on a GPU waits until the process ends.
std::unique_ptr<Communicator> with_gpus(std::unique_ptr<Communicator> host);

/// Version of the NCCL that this process finds, such as "2.27.3"; empty with a reason where there is none.
std::string nccl_version(std::string* why_none = nullptr);

}  // namespace saccade

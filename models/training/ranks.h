#pragma once
#include <cstdint>
#include <string>

#include "kernels/engine/communicator.h"
#include "models/config/config.h"

namespace saccade {

/// How many processes train one model, each a share of every batch, and which of them this is. Rank 0 reads the data, evaluates and writes
/// the run; the others do what it has them do (rank_orders.h).
struct Ranks {
  int count = 1, rank = 0;
  int local = 0, local_count = 1;        ///< among those of this host
  Communicator* communicator = nullptr;  ///< null: one rank, or a plan for one of several
  bool on_gpus = false;                  ///< the device `auto` is then a GPU, or an error
  std::string device = {};               ///< of one rank, whatever the config's says; empty: the config's
};

/// The device that was given in place of the config's, else the config's as one rank has it: of "cuda:0-3" and of "auto" and "cuda" with
/// several ranks, the GPU of the rank's number on its host. A host where the system shows every process one GPU gives that one. Throws
/// UsageError where a GPU is named for several ranks or the GPUs named are not as many as the ranks of a host; DeviceError where there are
/// fewer GPUs than ranks.
std::string rank_device(const std::string& device, const Ranks& ranks);

/// Ranks that a device names: 4 for "cuda:0-3", 1 for any other.
int ranks_of_device(const std::string& device);

/// Throws UsageError unless every step of the config has whole micro-batches for each of so many ranks, each as many.
void require_divisible(const TrainingConfig& training, int ranks);

}  // namespace saccade

#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "kernels/engine/socket_communicator.h"

namespace saccade {

/// One of several processes that a launcher has started for one run.
struct LaunchedRank {
  int rank = 0, count = 1;
  int local = 0, local_count = 1;  ///< among those of this host
  std::string job;                 ///< the same for the ranks of one start, and another for the next start
};

/// What the environment says: of a step of Slurm's srun (SLURM_STEP_ID, SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID; in a job's script
/// outside srun there is none), else of Open MPI's mpirun (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE). Nothing where neither
/// has started this process as one of several. Throws UsageError where these are no such numbers.
std::optional<LaunchedRank> launched_rank();

/// Connects the processes of a run, of one host or of several, over TCP (IPv4). Rank 0 writes where it listens into RUN/ranks, which the
/// others read: the file is put there in one instant, is its owner's alone, and holds a random token that whoever connects must say. A file
/// that another start left is of another job, or nobody listens there any more: the others wait for the new one. Rank 0 removes it when
/// all are connected, and nobody listens from then on. Where all ranks are on one host they listen on 127.0.0.1 alone.
/// Throws DataError when not all have come within so many seconds.
RankSockets meet(const std::filesystem::path& directory, const LaunchedRank& here, double seconds);

}  // namespace saccade

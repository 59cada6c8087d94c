#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/runs/files.h"

namespace saccade {

/// A lease is a file that says who writes in a folder, for file systems whose locks fail, or hold on one machine alone. It is made
/// whole by the first who tries (create_text), names its holder, and its time of change is the holder's sign of life, renewed every 10 s.
/// It is stale when that is older than 180 s *and* the holder is known to be gone: its process on this machine, by number and time of
/// start; its Slurm job; or a user says so. Times are compared as the file server gives them.

/// Who holds a lease.
struct LeaseHolder {
  int process = 0;
  int64_t started = 0;        ///< the process, in the kernel's ticks since boot: numbers of processes are used again
  std::string host;           ///< as it calls itself
  std::string boot;           ///< the kernel's id of this boot: equal on one machine only, until it starts again
  std::string pid_namespace;  ///< containers of one machine count processes apart
  std::string job;            ///< as slurm_job_life() takes it; empty outside Slurm
  int64_t restart = 0;        ///< how often Slurm had put the job back
  std::string token;          ///< random: no two leases have the same
  uint64_t inode = 0;         ///< number of the file: that of a copy is another
};

/// This process.
LeaseHolder this_process();

/// Whether its process is one of this machine, of this boot and these process numbers.
bool of_this_machine(const LeaseHolder& holder);

/// A lease as it lies there.
struct FoundLease {
  std::optional<LeaseHolder> holder;  ///< nothing where it is damaged, or is being made on a file system without hard links
  bool copied = false;                ///< the file is not the one that the holder made: a run that was copied, with its lease
  double changed = 0;                 ///< the last sign of life, in seconds since 1970 by the file server's clock
};
/// Nothing when there is none. Throws DataError for what is no regular file, or cannot be read.
std::optional<FoundLease> find_lease(const std::filesystem::path& file);
std::string lease_text(const LeaseHolder& holder);

/// "process 4711 on node3"
std::string describe(const LeaseHolder& holder);

/// Whether the holder is known to be gone: its process, where it is one of this machine, which did not start again since; the attempt of a
/// Slurm job that this process is a later attempt of; or, with `ask_slurm`, a job that Slurm says has ended.
bool known_gone(const LeaseHolder& holder, bool ask_slurm);

/// Whether the holder must be taken for alive: by its process where it is this machine's, else by its last sign of life, by this machine's
/// clock.
bool seems_alive(const FoundLease& lease);

inline constexpr double kLeaseSilence = 180;  ///< seconds without a sign of life after which a holder may be gone

}  // namespace saccade

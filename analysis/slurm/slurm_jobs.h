#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/slurm/program_call.h"
#include "kernels/engine/error.h"

namespace saccade {

/// Slurm did not answer in time, or not in a way that can be read: what it would have said is not known.
class NoAnswer : public Error {
 public:
  using Error::Error;
};

/// A job of this user, or a task of a job array, as `squeue` has it.
struct SlurmJob {
  std::string id;      ///< of the job, or of the array that the task is of
  int64_t task = -1;   ///< in the array; −1: the job is none
  std::string state;   ///< Slurm's word: PENDING, RUNNING, COMPLETING …
  std::string reason;  ///< why it waits, Slurm's word
  std::string words;   ///< its name and comment
  /// Whether it waits, runs, or may yet run again. A word that is not known counts as alive.
  bool alive() const;
};

/// What squeue says in the format "%F|%K|%T|%r|%j %k", a job a line. Throws NoAnswer for a line that is none.
std::vector<SlurmJob> jobs_in(const std::string& squeue_text);
/// The id of the first job that sacct names (--parsable2, JobID first).
std::optional<std::string> accounted_in(const std::string& sacct_text);

/// All jobs of this user that slurmctld still knows, those that ended a short while ago too (MinJobAge, five minutes as a rule), in one
/// call: squeue --me. Throws NoAnswer.
std::vector<SlurmJob> own_jobs(double seconds);

/// The id of a job whose name is `name`, by the accounting, which knows of those that ended long ago; nothing where it has none, or where
/// there is no accounting. Throws NoAnswer where it takes too long.
std::optional<std::string> accounted_job(const std::string& name, double seconds);

/// Whether one of Slurm's commands says that there is no such job: it has ended long ago, or, to scancel, its node has not begun it.
bool says_no_such_job(const ProgramAnswer& answer);

enum class JobLife { alive, ended, unknown };
/// Whether the job "4711", or the task "4711_3" of an array, still lives: what a lock that its process left on another node is judged by.
/// `unknown` where Slurm does not answer or is not there.
JobLife slurm_job_life(const std::string& job, double seconds);

/// The job that this process is part of, as slurm_job_life takes it: of SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID, else SLURM_JOB_ID.
/// Empty outside Slurm.
std::string own_slurm_job();

}  // namespace saccade

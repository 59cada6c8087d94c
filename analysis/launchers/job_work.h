#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

namespace saccade {

/// Exit codes of a program that trains (app/cli/command.h has the others).
inline constexpr int kToBeContinued = 75;  ///< SIGUSR2: it wrote a checkpoint and wants to be started again

/// What one job does: takes the runs of a task up, or begins them, each a process of its own (`program` train, resume) that says what it
/// has to say in HOME/slurm/ROUND/RUN.txt. When `stop` comes, they are told to write a checkpoint and end. Runs that have ended, that were
/// given up or that another process trains are left alone. What fails is noted in the study (StudyState::gave_up), but not what fails after
/// `stop` has come: with everything in a job told to end, that says nothing of the run. The exit code of the job: 0; kToBeContinued when a
/// run was told to end before it had ended by itself, 130 when the user had stopped all of it (is_stopped); 5 when another process has a
/// run; else that of a run that failed. Throws DataError, UsageError.
int work_on_task(const std::filesystem::path& home, const std::string& round, int64_t task, const std::filesystem::path& program,
                 const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say);

}  // namespace saccade

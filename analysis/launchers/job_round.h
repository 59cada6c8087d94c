#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace saccade {

/// A run of a job; paths are from the home folder, that of the study or of the one run.
struct RoundRun {
  std::filesystem::path run;     ///< its directory
  std::filesystem::path config;  ///< to train with where it has not begun
  int64_t step = 0;              ///< where it stood when the round was made
};

/// What was submitted at one time: HOME/slurm/round-N with tasks.json, submission.json, script.sh as it was submitted, and what the tasks
/// said, task-K.txt. A task is a job of the array, with one run or several side by side.
struct JobRound {
  std::string name;  ///< "round-1"
  std::vector<std::vector<RoundRun>> tasks;
  int64_t cpus = 1, gpus = 0;  ///< of a task; gpus 0: as the configs say
};

std::filesystem::path round_folder(const std::filesystem::path& home, const std::string& name);
/// Writes its folder under the next free number, which gives the name. Throws DataError.
void write_round(const std::filesystem::path& home, JobRound& round);
/// Throws DataError for one that is damaged, or that leads out of the home folder.
JobRound read_round(const std::filesystem::path& home, const std::string& name);
/// In the order they were made.
std::vector<JobRound> read_rounds(const std::filesystem::path& home);

/// Whether the user has asked that nothing more is done: a study that was stopped, or HOME/slurm/stopped of a run.
bool is_stopped(const std::filesystem::path& home);
void set_stopped(const std::filesystem::path& home, bool stopped);

}  // namespace saccade

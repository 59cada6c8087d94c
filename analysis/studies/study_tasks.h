#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade {

/// An entry of a study's "tasks": what its report scores the runs on, by the names that `saccade evaluate --task` has for its options.
struct StudyTask {
  std::string task;                      ///< a name, or the file of a user's own
  std::vector<int64_t> lengths;          ///< of generated prompts; empty: the usual ones
  std::vector<std::string> domains;      ///< of tasks on symbols; empty: those to test on
  std::vector<std::string> checkpoints;  ///< steps, or shares such as "90%"; empty, or "100%": a run's end
  std::string data;                      ///< folder of the task's files, or a file; empty: none is named
  int64_t limit = 0;                     ///< the first items only; 0: all
  int64_t shots = -1;                    ///< examples before each item; −1: as many as the task has
  int64_t max_length = 0;                ///< tokens that a model reads; 0: what it can
  int64_t samples = 1000;                ///< of a task on symbols
  int64_t seed = 42;                     ///< of generated prompts
  std::string prefix = "none", reading = "one_pass";
  bool trim = true, strict_spaces = false;
  std::string folder;    ///< in place of `data`, but for text that needles are hidden in; no key of the file
  std::string not_made;  ///< why scores that stand in the runs are shown and none is made; empty: they are
};

/// What a study file has under "tasks". A user's own task is not opened here: a study is read where its files need not be. Throws
/// UsageError
/// "/tasks/0/… is …; expected …".
std::vector<StudyTask> read_study_tasks(const nlohmann::json& study_file);

}  // namespace saccade

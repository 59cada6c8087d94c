#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saccade {

/// What a launcher does with a study beyond running one run after the other.
struct LauncherAbilities {
  bool outlives_this_machine = false;  ///< runs go on when this machine is switched off
  bool time_limits = false;            ///< runs are ended and begun again from a checkpoint
  bool many_at_once = false;           ///< more runs at a time than this machine has devices
};

/// What going on with a study did.
struct Launched {
  std::string place = {};  ///< "queue of cpu", "queues of cuda:0, cuda:1", "cluster NAME"
  std::string entry = {};  ///< ids of the queues' entries, or of the job; empty where nothing was submitted
  int64_t runs = 0;        ///< submitted now; 0 in a queue, which takes them one by one
  int64_t waiting = 0;     ///< submitted before, waiting or running
  bool paused = false;     ///< the queues are, so that nothing begins
};

/// A job, or an entry of a queue, that has runs of the study.
struct LaunchedJob {
  std::string id;                 ///< "4711_3"
  std::string state, reason;      ///< the launcher's words; "unknown" where it does not answer
  std::vector<std::string> runs;  ///< names of their folders
  bool alive = false;
};

struct Stopped {
  int64_t jobs = 0;     ///< taken out, waiting or running
  int64_t running = 0;  ///< asked to write a checkpoint and stop
};

/// Where the runs of a study go: into the queue of this machine, or to the scheduler of a cluster. Each works on the study's folder, whose
/// runs are ordinary run directories; how far they are stands in those, whatever a launcher says.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual std::string place() const = 0;
  virtual LauncherAbilities abilities() const = 0;
  /// Submits what can begin or go on now and is not submitted yet. May be called again and again, after any interruption: nothing is
  /// started twice. Throws Error.
  virtual Launched go_on() = 0;
  /// Of what was submitted and may still be alive. Throws Error.
  virtual std::vector<LaunchedJob> jobs() = 0;
  /// Nothing more begins; runs at work write a checkpoint and stop. Throws Error.
  virtual Stopped stop() = 0;
};

/// The launcher of a study's folder, or of a run's: that which was chosen for it last (choose_launcher), else the queue of this machine.
/// `program`: saccade. Throws DataError.
std::unique_ptr<Launcher> launcher_of(const std::filesystem::path& home, const std::filesystem::path& program);

/// "local" for the queue of this machine, else the name of a cluster, with so many jobs at a time (its profile says, where not given).
/// Throws UsageError where there is no such cluster, and where jobs of another one are still alive.
void choose_launcher(const std::filesystem::path& home, const std::string& name, std::optional<int64_t> at_a_time = {});
/// What was chosen: "local", or a cluster's name.
std::string chosen_launcher(const std::filesystem::path& home);

}  // namespace saccade

#pragma once
#include <set>

#include "analysis/launchers/cluster_profile.h"
#include "analysis/launchers/job_round.h"
#include "analysis/launchers/launcher.h"
#include "analysis/slurm/slurm_jobs.h"
#include "analysis/studies/study_folder.h"

namespace saccade {

/// The script of a study's jobs, with the lead that a checkpoint takes in `folder` or the folder above it that there is.
std::string script_of_study(const ClusterProfile& profile, const StudyView& view, const std::filesystem::path& folder,
                            const std::filesystem::path& program);

/// Job arrays of a cluster. What can run goes out as one array, a round, of at most `at_a_time` jobs at once; what only the ends of its
/// runs decide (further values of a search, seeds at the best one) goes out as another round, submitted by a small job that waits for the
/// array, or by calling go_on() again. Everything is kept in HOME/slurm (job_round.h, submission.h, batch_script.h).
class SlurmLauncher : public Launcher {
 public:
  /// `home`: of a study, or of one run, whose config then lies in HOME/slurm/config.json. `at_a_time`: instead of the profile's.
  SlurmLauncher(std::filesystem::path home, std::string cluster, ClusterProfile profile, std::filesystem::path program);

  std::string place() const override { return "cluster " + cluster_; }
  LauncherAbilities abilities() const override { return {true, true, true}; }
  Launched go_on() override;
  std::vector<LaunchedJob> jobs() override;
  Stopped stop() override;

  /// The script that go_on() would submit: edited, or made from the profile.
  std::string script() const;

 private:
  struct Told {
    Stopped stopped;
    bool all = true;  ///< false where Slurm did not know one of them
  };
  Told tell_to_stop(double seconds) const;
  std::vector<std::string> options(const JobRound& round) const;  ///< of sbatch
  bool is_study() const;
  std::string name() const;  ///< of the folder
  std::vector<RoundRun> open_runs() const;
  std::vector<RoundRun> of_study() const;
  std::vector<RoundRun> of_run() const;
  JobRound round_of(std::vector<RoundRun> runs, size_t most_jobs) const;
  std::string submit(const JobRound& round) const;
  void submit_next(const std::vector<std::string>& after, const std::vector<SlurmJob>& known) const;
  void give_up_stuck(std::vector<RoundRun>& runs, const std::vector<JobRound>& rounds) const;

  std::filesystem::path home_;
  std::string cluster_;
  ClusterProfile profile_;
  std::filesystem::path program_;
};

}  // namespace saccade

#include <fcntl.h>

#include <algorithm>

#include "analysis/launchers/batch_script.h"
#include "analysis/launchers/cluster_profile.h"
#include "analysis/launchers/job_round.h"
#include "analysis/launchers/launcher.h"
#include "analysis/launchers/submission.h"
#include "analysis/remote/host_profile.h"
#include "analysis/runs/lease_holder.h"
#include "analysis/runs/run_lock.h"
#include "analysis/slurm/slurm_jobs.h"
#include "models/config_text.h"
#include "tests/fuzz/targets.h"

namespace saccade::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// What is accepted is the same when it is read again, and starts nothing but what it says: ssh takes no option in the machine's place.
void host_profile(std::string_view bytes) {
  const HostProfile once = host_profile_of(parse_json_text(std::string(bytes), "fuzz"), "fuzz");
  const Json written_out = host_schema().write(once);
  require(host_schema().write(host_profile_of(written_out, "again")) == written_out, "a profile is another when it is read again");
  require(!once.ssh.empty() && once.ssh.front() != '-' && once.ssh.find('\n') == std::string::npos, "a machine that is an option of ssh");
}

/// The script that a profile gives says of Slurm's options what the profile says, one a line, in front of all commands.
void cluster_profile(std::string_view bytes) {
  const ClusterProfile once = parse_cluster_profile(std::string(bytes), "fuzz");
  const Json written_out = cluster_schema().write(once);
  require(cluster_schema().write(cluster_profile_of(written_out, "again")) == written_out, "a profile is another when it is read again");
  const std::string script = batch_script(once, {"the study fuzz", "/usr/bin/saccade", 120});
  require(script.starts_with("#!") && script.find('\0') == std::string::npos, "a script that no shell takes");
  const auto lines = std::count(script.begin(), script.end(), '\n');
  ClusterProfile plain = once;
  for (std::string* text : {&plain.partition, &plain.account, &plain.qos, &plain.gres, &plain.memory})
    if (!text->empty()) *text = "1";
  for (std::string& option : plain.options) option = "--x=1";
  const std::string plain_script = batch_script(plain, {"the study fuzz", "/usr/bin/saccade", 120});
  require(std::count(plain_script.begin(), plain_script.end(), '\n') == lines, "a value of a profile adds lines to the script");
}

/// Times as Slurm writes them are no less than nothing.
void slurm_time(std::string_view bytes) { require(slurm_seconds(std::string(bytes)) >= 0, "a time limit below nothing"); }

void squeue_text(std::string_view bytes) {
  for (const SlurmJob& job : jobs_in(std::string(bytes))) {
    require(!job.id.empty() && job.id.find_first_not_of("0123456789") == std::string::npos, "a job whose id is no number");
    require(job.task >= -1 && !job.state.empty(), "a job without a state, or with a task below none");
    static_cast<void>(job.alive());
  }
}

/// sacct and sbatch: ids that may stand in a command.
void job_ids(std::string_view bytes) {
  const auto is_number = [](const std::string& id) { return !id.empty() && id.find_first_not_of("0123456789") == std::string::npos; };
  if (const auto id = accounted_in(std::string(bytes))) require(is_number(*id), "sacct: a job whose id is no number");
  if (const std::string id = job_id_in(std::string(bytes)); !id.empty()) require(is_number(id), "sbatch: a job whose id is no number");
}

void submission(std::string_view bytes) {
  written("submitted/submission.json", bytes);
  const std::optional<Submission> found = read_submission(fuzz_folder() / "submitted");
  require(found && found->token.size() == 16, "a token of another size");
  require(found->job.find_first_not_of("0123456789") == std::string::npos, "a job whose id is no number");
}

/// What a round names lies in the home folder.
void job_round(std::string_view bytes) {
  const fs::path home = fuzz_folder() / "home";
  written("home/slurm/round-1/tasks.json", bytes);
  const JobRound round = read_round(home, "round-1");
  for (const std::vector<RoundRun>& task : round.tasks)
    for (const RoundRun& run : task)
      for (const fs::path& path : {run.run, run.config}) {
        const std::string there = (home / path).lexically_normal().string();
        require(there.starts_with(home.string()), "a round that leads out of its folder");
      }
}

void chosen_cluster(std::string_view bytes) {
  const fs::path home = fuzz_folder() / "chosen";
  written("chosen/slurm/cluster.json", bytes);
  static_cast<void>(chosen_launcher(home));
  require(!launcher_of(home, "/usr/bin/saccade")->place().empty(), "a launcher that is nowhere");
}

/// What is accepted is the same when it is written and read again, and is held by a process.
void lease(std::string_view bytes) {
  const fs::path file = written("leased/lease", bytes);
  const std::optional<FoundLease> once = find_lease(file);
  require(once.has_value(), "a lease that is there is none");
  static_cast<void>(seems_alive(*once));
  if (!once->holder) return;
  require(once->holder->process > 0 && !describe(*once->holder).empty(), "a holder that is no process");
  static_cast<void>(known_gone(*once->holder, false));
  written("leased/again", lease_text(*once->holder));
  const std::optional<FoundLease> again = find_lease(fuzz_folder() / "leased/again");
  require(lease_text(*once->holder).size() > 4000 || (again && again->holder && again->holder->token == once->holder->token),
          "a lease is another when it is read again");
}

/// Of a run that nobody writes; a lock that is not held says who wrote last.
void lock(std::string_view bytes) {
  written("locked/lock", bytes);
  require(!lock_holder(fuzz_folder() / "locked"), "a run that nobody holds is held");
  static_cast<void>(held_here(fuzz_folder() / "locked"));
}

}  // namespace

std::vector<FuzzTarget> cluster_targets() {
  return {{"host_profile", host_profile},
          {"cluster_profile", cluster_profile},
          {"slurm_time", slurm_time},
          {"squeue", squeue_text},
          {"job_ids", job_ids},
          {"submission", submission},
          {"job_round", job_round},
          {"chosen_cluster", chosen_cluster},
          {"lease", lease},
          {"lock", lock}};
}

}  // namespace saccade::test

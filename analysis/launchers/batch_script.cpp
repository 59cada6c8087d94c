#include "analysis/launchers/batch_script.h"

#include <vector>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/folders.h"
#include "models/corpus/sha256.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMark = "# As saccade wrote it (SHA-256 of the other lines): ";

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The text without its second line, where that is the mark; and what the mark says.
std::string without_mark(const std::string& script, std::string& hash) {
  const size_t first = script.find('\n');
  if (first == std::string::npos || script.compare(first + 1, std::string(kMark).size(), kMark) != 0) return script;
  const size_t begin = first + 1 + std::string(kMark).size(), end = script.find('\n', begin);
  if (end == std::string::npos) return script;
  hash = script.substr(begin, end - begin);
  return script.substr(0, first + 1) + script.substr(end + 1);
}

std::string marked(const std::string& script) {
  const size_t first = script.find('\n') + 1;
  return script.substr(0, first) + kMark + hex(sha256(script)) + "\n" + script.substr(first);
}

std::string directive(const std::string& option) { return "#SBATCH " + option + "\n"; }

std::string site_directives(const ClusterProfile& profile) {
  std::string text;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += directive(std::string("--") + option + "=" + value);
  };
  add("partition", profile.partition), add("account", profile.account), add("qos", profile.qos);
  return text;
}

std::string directives(const ClusterProfile& profile, int64_t lead) {
  std::string text = site_directives(profile);
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += directive(std::string("--") + option + "=" + value);
  };
  text += directive("--nodes=1") + directive("--ntasks=1");
  add("cpus-per-task", std::to_string(profile.cpus)), add("gres", profile.gres), add("mem", profile.memory), add("time", profile.time);
  add("signal", "B:USR2@" + std::to_string(lead));
  for (const std::string& option : profile.options) text += directive(option);
  return text + directive("--requeue") + directive("--open-mode=append");
}

/// What the program needs to find the same files as where it was submitted.
std::string environment(const ClusterProfile& profile) {
  std::string text = "export SACCADE_DATA=" + quoted(data_folder().string()) + "\n";
  text += "export SACCADE_CONFIG=" + quoted(config_folder().string()) + "\n";
  text += "export SACCADE_CACHE=" + (profile.scratch.empty() ? quoted(cache_folder().string()) : "\"" + profile.scratch + "\"") + "\n";
  for (const std::string& line : profile.setup) text += line + "\n";
  return text;
}

std::string program_words(const ClusterProfile& profile, const BatchScript& script) {
  return (profile.container.empty() ? "" : profile.container + " ") +
         quoted(profile.program.empty() ? script.program.string() : profile.program);
}

/// Signals on to the program, and back into the queue when it says that it is to be continued.
constexpr const char* kWork = R"(work='' asked=0
ask() {  # a checkpoint, then the end "to be continued" (exit code 75)
  asked=$((asked + 1)) how=$1
  [ -z "$work" ] || kill -USR2 "$work" 2>/dev/null
}
trap 'ask USR2' USR2  # the time limit is near
trap 'ask TERM' TERM  # preemption, the time limit, scancel

PROGRAM -q cluster work "$1" "$2" "${SLURM_ARRAY_TASK_ID:-0}" &
work=$!
while :; do
  heard=$asked
  wait "$work"
  code=$?
  [ "$asked" = "$heard" ] && break  # else it was a signal that ended the waiting
done

if [ "$code" = 75 ]; then
  job=$SLURM_JOB_ID
  [ -z "${SLURM_ARRAY_JOB_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
  # After SIGTERM: scancel means it, and where Slurm itself has put the job back nothing is left to do.
  state=$(squeue --noheader --jobs="$job" --format='%T %r' | tail -n 1)
  case "$how $state" in
    'TERM COMPLETING TimeLimit' | USR2* | TERM\ RUNNING* | TERM\ SIGNALING*)
      for pause in 1 10 60; do scontrol requeue "$job" && break; sleep "$pause"; done ;;
    *) echo "not put back into the queue: $state" ;;
  esac
fi
exit "$code"
)";

}  // namespace

std::string batch_script(const ClusterProfile& profile, const BatchScript& script) {
  if (const int64_t limit = slurm_seconds(profile.time); limit > 0 && 2 * script.lead > limit)
    throw UsageError("the time limit of a job, " + profile.time + ", is less than twice the " + std::to_string(script.lead) +
                     " s that a run gets to end; expected a longer /time, or a shorter /signal_lead, in the profile of the cluster");
  std::string work = kWork;
  work.replace(work.find("PROGRAM"), 7, program_words(profile, script));
  return marked("#!/bin/bash\n# Jobs of " + script.what +
                ". sbatch gets name, comment, array and output file as options; $1: this folder, $2: the round.\n"
                "# What is changed here is used from the next submission on, and never overwritten.\n" +
                directives(profile, script.lead) + "set -u\n" + environment(profile) + "\n" + work);
}

std::string advance_script(const ClusterProfile& profile, const BatchScript& script) {
  return marked("#!/bin/bash\n# Submits what the runs of " + script.what + " that have ended decide.\n" + site_directives(profile) +
                directive("--nodes=1") + directive("--ntasks=1") + directive("--time=00:30:00") + "set -u\n" + environment(profile) + "\n" +
                "exec " + program_words(profile, script) + " -q study advance \"$1\"\n");
}

bool is_generated(const std::string& script) {
  std::string hash;
  const std::string rest = without_mark(script, hash);
  return !hash.empty() && hex(sha256(rest)) == hash;
}

fs::path script_file(const fs::path& home) { return home / "slurm" / "script.sh"; }

std::string script_to_use(const fs::path& home, const std::string& generated) {
  std::error_code none;
  const fs::path file = script_file(home);
  if (!fs::exists(file, none)) return generated;
  const std::string there = read_text(file);
  return is_generated(there) ? generated : there;
}

std::string keep_script(const fs::path& home, const std::string& generated) {
  const std::string text = script_to_use(home, generated);
  std::error_code none;
  if (!fs::exists(script_file(home), none) || text != read_text(script_file(home))) replace_text(script_file(home), text);
  return text;
}

}  // namespace saccade

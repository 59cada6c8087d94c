// saccade cluster list | show | add | test: sites with a batch system, and what their jobs are told.
#include <algorithm>
#include <sstream>

#include "analysis/launchers/batch_script.h"
#include "analysis/launchers/job_work.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/slurm/program_call.h"
#include "analysis/slurm/slurm_jobs.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/output.h"
#include "app/cli/this_program.h"
#include "models/config_text.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Options {
  std::string name, from, home, round;
  std::vector<std::string> settings;
  int64_t task = 0;
  bool replace = false;
};

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  if (!value.is_array()) return value.dump();
  for (const Json& each : value) text += (text.empty() ? "" : "; ") + shown(each);
  return text;
}

int list_clusters(const Options&) {
  Json json = Json::array();
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& name : cluster_names()) {
    try {
      const Json profile = cluster_schema().write(load_cluster(name));
      json.push_back({{"name", name}, {"file", cluster_file(name).string()}, {"profile", profile}});
      rows.emplace_back(name, "partition " + (shown(profile["partition"]).empty() ? "(default)" : shown(profile["partition"])) + ", " +
                                  cluster_file(name).string());
    } catch (const Error& error) {
      json.push_back({{"name", name}, {"file", cluster_file(name).string()}, {"problem", error.what()}});
      rows.emplace_back(name, error.what());
    }
  }
  print_result(json, rows.empty() ? "no cluster is set up; begin with: saccade cluster add NAME --set partition=gpu" : list(rows));
  return 0;
}

int show(const Options& options) {
  const Json profile = cluster_schema().write(load_cluster(options.name));
  std::vector<std::vector<std::string>> rows;
  for (const Setting& setting : cluster_schema().settings()) rows.push_back({setting.name, shown(profile.at(setting.name)), setting.help});
  print_result({{"name", options.name}, {"file", cluster_file(options.name).string()}, {"profile", profile}},
               cluster_file(options.name).string() + "\n" + table({"setting", "value", ""}, rows));
  return 0;
}

int add(const Options& options) {
  Json profile = Json::object();
  std::error_code none;
  if (!options.from.empty()) profile = parse_json_text(read_text(options.from), options.from);
  for (const std::string& setting : options.settings) apply_override(profile, setting);
  save_cluster(options.name, profile, options.replace);
  const fs::path file = cluster_file(options.name);
  print_result({{"name", options.name}, {"file", file.string()}}, file.string() + "\ntry it: saccade cluster test " + options.name);
  return 0;
}

/// One question to the site, and what it says.
struct Check {
  std::string what, answer;
  bool good = false;
};

Check check(const std::string& what, const std::vector<std::string>& command, double seconds) {
  const ProgramAnswer answer = call_program(command, seconds);
  if (answer.timed_out) return {what, "no answer within " + std::to_string(static_cast<int64_t>(seconds)) + " s"};
  return {what, answer.ok() && answer.err.empty() ? answer.out : answer.last_line(), answer.ok()};
}

/// The sites' own limits decide: sbatch --test-only with the script that would be submitted.
Check test_script(const ClusterProfile& profile, double seconds) {
  const fs::path file = fs::temp_directory_path() / ("saccade-cluster-test-" + std::to_string(::getpid()) + ".sh");
  const int64_t lead = profile.signal_lead > 0 ? profile.signal_lead : 120;
  replace_text(file, batch_script(profile, {"a test", this_program(), lead}));
  const Check made = check("a job of this profile", {"sbatch", "--test-only", file.string()}, seconds);
  remove_run_file(file);
  return made;
}

int test(const Options& options) {
  const ClusterProfile profile = load_cluster(options.name);
  const auto seconds = static_cast<double>(profile.answer_seconds);
  std::vector<std::string> sinfo{"sinfo", "--noheader", "--format=%P: %a, limit %l, %D nodes of %c cores, %m MB, %G, %T"};
  if (!profile.partition.empty()) sinfo.push_back("--partition=" + profile.partition);
  std::vector<Check> checks{check("controller", {"scontrol", "ping"}, seconds), check("partition", sinfo, seconds)};
  if (checks.back().good && checks.back().answer.empty())
    checks.back() = {"partition", "there is no partition " + profile.partition + " here; sinfo lists those there are"};
  checks.push_back(test_script(profile, seconds));
  try {
    checks.push_back({"own jobs", std::to_string(own_jobs(seconds).size()) + " that squeue --me knows", true});
  } catch (const NoAnswer& error) {
    checks.push_back({"own jobs", error.what()});
  }
  const Check accounting = check("accounting", {"sacct", "--noheader", "--starttime=now-1hours"}, seconds);
  checks.push_back({"accounting",
                    accounting.good ? "there is sacct, which knows of jobs that ended long ago"
                                    : "none (" + accounting.answer + "); squeue alone is asked",
                    true});
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows;
  bool good = true;
  for (const Check& each : checks) {
    std::istringstream lines(each.answer);
    std::string line, first = each.what;
    while (std::getline(lines, line)) rows.push_back({std::exchange(first, ""), each.good ? "yes" : "NO", line});
    json.push_back({{"what", each.what}, {"good", each.good}, {"answer", each.answer}});
    good = good && each.good;
  }
  print_result({{"name", options.name}, {"good", good}, {"checks", json}}, table({"", "", options.name}, rows));
  if (!good)
    throw DataError("the cluster " + options.name + " does not take jobs of this profile; see " + cluster_file(options.name).string());
  return 0;
}

/// What a job's script calls: not for people.
int work(const Options& options) {
  catch_stop_signals();
  return work_on_task(options.home, options.round, options.task, this_program(), stop_requested(),
                      [](const std::string& line) { warn(utc_now() + " " + line); });
}

const RegisterCommand command{
    {"cluster", "Sites with a batch system (Slurm), and what their jobs are told.",
     "saccade cluster add lab --set partition=gpu --set gres=gpu:1", [](CLI::App& app) {
       auto chosen = std::make_shared<std::function<int()>>();
       const auto declare = [&](const std::string& name, const std::string& summary, auto perform, auto options_of) {
         CLI::App* sub = app.add_subcommand(name, summary);
         auto options = std::make_shared<Options>();
         options_of(*sub, options);
         sub->callback([chosen, options, perform] { *chosen = [options, perform] { return perform(*options); }; });
         return sub;
       };
       using Shared = std::shared_ptr<Options>;
       const auto named = [](CLI::App& sub, const Shared& o) { sub.add_option("NAME", o->name, "The cluster's name")->required(); };
       app.require_subcommand(1);
       declare("list", "Clusters that are set up.", list_clusters, [](CLI::App&, const Shared&) {});
       declare("show", "Every setting of a profile, with what it means.", show, named)->footer("Example: saccade cluster show lab");
       declare("test", "Ask the site whether it takes such jobs; nothing is submitted.", test, named)
           ->footer("Example: saccade cluster test lab");
       declare("add", "Set a cluster up: its profile is a JSON file in the config folder.", add, [=](CLI::App& sub, const Shared& o) {
         named(sub, o);
         one_at_a_time(sub.add_option("--set", o->settings, "A setting of the profile (saccade cluster show): --set time=04:00:00"),
                       "KEY=VALUE");
         sub.add_option("--from", o->from, "A profile to begin with");
         sub.add_flag("--replace", o->replace, "Write it anew where it is there already");
       })->footer("Example: saccade cluster add lab --set partition=gpu --set gres=gpu:1 --set time=04:00:00");
       declare("work", "", work, [](CLI::App& sub, const Shared& o) {
         sub.add_option("HOME", o->home)->required();
         sub.add_option("ROUND", o->round)->required();
         sub.add_option("TASK", o->task)->required();
       })->group("");
       return [chosen] { return (*chosen)(); };
     }}};

}  // namespace
}  // namespace saccade::cli

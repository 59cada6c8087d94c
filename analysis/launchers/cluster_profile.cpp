#include "analysis/launchers/cluster_profile.h"

#include <algorithm>
#include <regex>
#include <string_view>

#include "analysis/runs/files.h"
#include "models/config_text.h"
#include "models/corpus/folders.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using P = ClusterProfile;

std::string quoted(const std::string& text) { return Json(text.substr(0, 200)).dump(-1, ' ', false, Json::error_handler_t::replace); }

bool is_one_of(const char* letters, char letter) { return std::string_view(letters).find(letter) != std::string_view::npos; }

[[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) {
  throw UsageError("/" + key + " is " + quoted(value) + "; expected " + expected);
}

// Not by regular expressions: those of the library take a stack that grows with the text.

bool is_word(const std::string& text) { return text.find_first_of(" \t\n\r\f\v|;&") == std::string::npos; }

/// "32G"
bool is_memory(const std::string& text) {
  const size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  return unit > 0 && text[0] != '0' && (unit == text.size() || (unit + 1 == text.size() && is_one_of("KMGT", text[unit])));
}

/// Of "--constraint=h100", "constraint"; empty where it has another form.
std::string option_name(const std::string& option) {
  if (!option.starts_with("--")) return {};
  const size_t end = std::min(option.find('=', 2), option.size());
  const std::string name = option.substr(2, end - 2);
  const bool plain = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos && !name.starts_with('-');
  const bool valued = end == option.size() || (end + 1 < option.size() && !is_one_of(" \t\n\r\f\v", option[end + 1]));
  return plain && valued ? name : "";
}

void check_form(const char* key, const std::string& value, bool (*fits)(const std::string&), const char* expected) {
  if (!value.empty() && !fits(value)) refuse(key, value, expected);
}

/// Every value becomes a line of a script, or a word of a command.
void check_lines(const P& profile) {
  const auto one_line = [](const std::string& key, const std::string& value) {
    if (value.find_first_of(std::string("\n\r\0", 3)) != std::string::npos) refuse(key, value, "one line");
  };
  const Json values = cluster_schema().write(profile);
  for (const auto& [key, value] : values.items()) {
    if (value.is_string()) one_line(key, value);
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) one_line(key + "/" + std::to_string(i), value[i]);
  }
}

/// Options of sbatch that each submission gives a value of its own, or that have a setting here.
void check_options(const P& profile) {
  static const std::vector<std::string> kOwn{"array",      "job-name",  "comment",    "output",   "error", "signal",        "requeue",
                                             "no-requeue", "open-mode", "dependency", "parsable", "wrap",  "wait",          "partition",
                                             "account",    "qos",       "gres",       "mem",      "time",  "cpus-per-task", "export"};
  for (size_t i = 0; i < profile.options.size(); ++i) {
    const std::string& option = profile.options[i];
    const std::string key = "options/" + std::to_string(i);
    const std::string name = option_name(option);
    if (name.empty()) refuse(key, option, "an option of sbatch, like \"--constraint=h100\"");
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
      refuse(key, option, "none that a submission or a setting of the profile gives (--" + name + ")");
  }
}

void check(const P& profile) {
  check_lines(profile);
  check_form("partition", profile.partition, is_word, "a name without spaces");
  check_form("account", profile.account, is_word, "a name without spaces");
  check_form("qos", profile.qos, is_word, "a name without spaces");
  check_form("gres", profile.gres, is_word, "generic resources, like \"gpu:1\"");
  check_form("memory", profile.memory, is_memory, "memory of a job, like \"32G\"");
  if (!profile.time.empty() && slurm_seconds(profile.time) == 0)
    refuse("time", profile.time, "a time limit, like \"04:00:00\" or \"1-12:00:00\"");
  if (const int64_t limit = slurm_seconds(profile.time); limit > 0 && profile.signal_lead > 0 && 2 * profile.signal_lead > limit)
    throw UsageError("/signal_lead is " + std::to_string(profile.signal_lead) + "; expected at most half of /time, " +
                     std::to_string(limit) + " s");
  if (!profile.program.empty() && profile.program.front() != '/') refuse("program", profile.program, "a path from the root");
  check_options(profile);
}

}  // namespace

const Schema<ClusterProfile>& cluster_schema() {
  static const Schema<P> schema{
      choice_field("scheduler", &P::scheduler, {"slurm"}, "The batch system of the site."),
      text_field("partition", &P::partition, "Partition; empty: the site's default."),
      text_field("account", &P::account, "Account that is charged."),
      text_field("qos", &P::qos, "Quality of service."),
      text_field("gres", &P::gres, "Generic resources of a job, like gpu:1."),
      field("cpus", &P::cpus, {1, 4096}, "Cores of a job."),
      field("gpus", &P::gpus, {0, 64}, "GPUs that share each run (--gpus); 0: as its config says."),
      text_field("memory", &P::memory, "Memory of a job, like 32G."),
      text_field("time", &P::time, "Time limit of a job, like 04:00:00; a run that takes longer goes on in the job's next turn."),
      list_field("options", &P::options, "Further options of sbatch, like --constraint=h100."),
      list_field("setup", &P::setup, "Lines of shell before the program, like module load cuda."),
      text_field("container", &P::container, "Words before the program, like apptainer exec --nv /shared/saccade.sif."),
      text_field("program", &P::program, "Path of saccade on the nodes; empty: that of the program that submits."),
      text_field("scratch", &P::scratch,
                 "Folder for caches on the nodes, like /scratch/$USER; empty: the cache folder of whoever submits."),
      field("signal_lead", &P::signal_lead, {0, 65535},
            "Seconds before the time limit at which runs write a checkpoint and end; 0: 3 x (checkpoint + step), at least 120."),
      field("at_a_time", &P::at_a_time, {1, 10000}, "Jobs of a study that run at a time (the % of its array)."),
      field("most_jobs", &P::most_jobs, {1, 100000}, "Jobs that a study has in the queue at most."),
      field("pack", &P::pack, {1, 64}, "Runs side by side in one job, on its one GPU."),
      choice_field("next_round", &P::next_round, {"job", "by-hand"},
                   "Who submits what only the ends of other runs decide: a small job that waits for them, or saccade study resume."),
      field("answer_seconds", &P::answer_seconds, {1, 3600}, "Seconds that sbatch, squeue and the others may take to answer."),
      field("poll_seconds", &P::poll_seconds, {1, 3600}, "Seconds between two calls of squeue while --wait waits."),
  };
  return schema;
}

ClusterProfile cluster_profile_of(const Json& object, const std::string& origin) try {
  std::vector<std::string> names;
  for (const Setting& setting : cluster_schema().settings()) names.push_back(setting.name);
  check_known_keys(object, names, "the profile");
  ClusterProfile profile = cluster_schema().read(object, "");
  check(profile);
  return profile;
} catch (const UsageError& error) {
  throw UsageError(origin + ": " + error.what());
}

ClusterProfile parse_cluster_profile(const std::string& text, const std::string& origin) {
  return cluster_profile_of(parse_json_text(text, origin), origin);
}

fs::path cluster_file(const std::string& name) { return config_folder() / "clusters" / (name + ".json"); }

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(config_folder() / "clusters", none))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

ClusterProfile load_cluster(const std::string& name) {
  const std::vector<std::string> names = cluster_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UsageError("there is no cluster " + quoted(name) +
                     (names.empty() ? "; set one up with: saccade cluster add NAME --set partition=gpu" : did_you_mean(name, names)));
  const fs::path file = cluster_file(name);
  return parse_cluster_profile(read_text(file), file.string());
}

void save_cluster(const std::string& name, const Json& profile, bool replace) {
  if (!std::regex_match(name, std::regex("[A-Za-z0-9][A-Za-z0-9._-]{0,60}")) || name == "local")
    throw UsageError("a cluster cannot be called " + quoted(name) + "; expected letters, digits, dots and dashes (and not \"local\")");
  const fs::path file = cluster_file(name);
  static_cast<void>(cluster_profile_of(profile, file.string()));
  std::error_code none;
  if (fs::exists(file, none) && !replace) throw UsageError(file.string() + " is there already; --replace writes it anew");
  make_folders_above(file);
  replace_text(file, profile.dump(2) + "\n");
}

int64_t slurm_seconds(const std::string& time) {
  static const std::regex kForm("(?:([0-9]{1,4})-)?([0-9]{1,6})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?");
  std::smatch part;
  if (!std::regex_match(time, part, kForm)) return 0;
  const auto number = [&](size_t at) { return part[at].matched ? std::stoll(part[at].str()) : 0LL; };
  if (part[1].matched) return number(1) * 86400 + number(2) * 3600 + number(3) * 60 + number(4);  // days-hours:minutes:seconds
  if (part[4].matched) return number(2) * 3600 + number(3) * 60 + number(4);
  return number(2) * 60 + number(3);  // minutes:seconds
}

}  // namespace saccade

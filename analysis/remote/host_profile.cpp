#include "analysis/remote/host_profile.h"

#include <algorithm>
#include <regex>

#include "analysis/launchers/cluster_profile.h"
#include "analysis/runs/files.h"
#include "models/config_text.h"
#include "models/corpus/folders.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using P = HostProfile;

std::string quoted(const std::string& text) { return Json(text.substr(0, 200)).dump(-1, ' ', false, Json::error_handler_t::replace); }

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check(const P& profile) {
  const Json values = host_schema().write(profile);
  for (const auto& [key, value] : values.items())
    if (value.is_string() && value.get<std::string>().find_first_of(std::string("\n\r\0", 3)) != std::string::npos)
      throw UsageError("/" + key + " is " + value.dump() + "; expected one line");
  if (profile.ssh.empty() || profile.ssh.starts_with('-') || profile.ssh.find_first_of(" \t\n\r\f\v") != std::string::npos)
    throw UsageError("/ssh is " + quoted(profile.ssh) + "; expected what ssh calls the machine: an alias of its config, or user@machine");
  if (profile.program.empty()) throw UsageError("/program is empty; expected the command that starts saccade there");
}

}  // namespace

const Schema<HostProfile>& host_schema() {
  static const Schema<P> schema{
      text_field("ssh", &P::ssh, "What ssh calls the machine: an alias of its config, or user@machine."),
      text_field("program", &P::program, "Command that starts saccade there, as a shell takes it; saccade host copy sets it."),
      text_field("folder", &P::folder, "Folder of runs there, from the home folder or from the root; empty: its runs folder."),
      text_field("cluster", &P::cluster, "Cluster that is set up on the host, which runs go to; empty: the host itself."),
      text_field("gpu_command", &P::gpu_command, "Command that names its GPUs with their driver, a line each."),
      choice_field("files", &P::files, {"all", "asked"},
                   "Captures and results.h5 come with the journals, or only when they are asked for (saccade host fetch)."),
      field("answer_seconds", &P::answer_seconds, {2, 600}, "Seconds without an answer after which the connection is made anew."),
      field("poll_seconds", &P::poll_seconds, {1, 3600}, "Seconds between two looks at what is new there."),
  };
  return schema;
}

HostProfile host_profile_of(const Json& object, const std::string& origin) try {
  std::vector<std::string> names;
  for (const Setting& setting : host_schema().settings()) names.push_back(setting.name);
  check_known_keys(object, names, "the profile");
  HostProfile profile = host_schema().read(object, "");
  check(profile);
  return profile;
} catch (const UsageError& error) {
  throw UsageError(origin + ": " + error.what());
}

fs::path host_file(const std::string& name) { return config_folder() / "hosts" / (name + ".json"); }

std::vector<std::string> host_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(config_folder() / "hosts", none))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

HostProfile load_host(const std::string& name) {
  const std::vector<std::string> names = host_names();
  if (!has(names, name))
    throw UsageError("there is no host " + quoted(name) +
                     (names.empty() ? "; set one up with: saccade host add NAME --ssh ALIAS" : did_you_mean(name, names)));
  const fs::path file = host_file(name);
  return host_profile_of(parse_json_text(read_text(file), file.string()), file.string());
}

void save_host(const std::string& name, const Json& profile, bool replace) {
  if (!std::regex_match(name, std::regex("[A-Za-z0-9][A-Za-z0-9._-]{0,60}")) || name == "local")
    throw UsageError("a host cannot be called " + quoted(name) + "; expected letters, digits, dots and dashes (and not \"local\")");
  if (has(cluster_names(), name)) throw UsageError("there is a cluster called " + name + "; expected another name for the host");
  const fs::path file = host_file(name);
  static_cast<void>(host_profile_of(profile, file.string()));
  std::error_code none;
  if (fs::exists(file, none) && !replace) throw UsageError(file.string() + " is there already; --replace writes it anew");
  make_folders_above(file);
  replace_text(file, profile.dump(2) + "\n");
}

void remove_host(const std::string& name) {
  static_cast<void>(load_host(name));
  if (const std::string problem = remove_run_file(host_file(name)); !problem.empty())
    throw DataError("cannot remove " + host_file(name).string() + ": " + problem);
}

Where where_named(const std::string& name) {
  if (name.empty() || name == "local") return Where::here;
  const bool host = has(host_names(), name), cluster = has(cluster_names(), name);
  if (host && cluster)
    throw UsageError(quoted(name) + " is both a host and a cluster; rename one of " + host_file(name).string() + " and " +
                     cluster_file(name).string());
  if (host) return Where::host;
  if (cluster) return Where::cluster;
  std::vector<std::string> names = host_names();
  for (const std::string& each : cluster_names()) names.push_back(each);
  throw UsageError("there is no host or cluster " + quoted(name) +
                   (names.empty() ? "; set one up with saccade host add or saccade cluster add" : did_you_mean(name, names)));
}

}  // namespace saccade

// saccade host add | list | show | test | copy | sync | fetch | remove: machines that are reached over ssh, and their runs mirrored here.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "analysis/figures/count_text.h"
#include "analysis/remote/mirror.h"
#include "analysis/remote/relay.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/host_call.h"
#include "app/cli/host_copy.h"
#include "app/cli/output.h"
#include "app/cli/version.h"
#include "kernels/engine/clock.h"
#include "models/config_text.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Options {
  std::string name, ssh, from, bundle, run;
  std::vector<std::string> settings;
  std::vector<int64_t> captures, checkpoints;
  bool replace = false, watch = false, until_eof = false;
};

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

int add(const Options& options) {
  Json profile = Json::object();
  if (!options.from.empty()) profile = parse_json_text(read_text(options.from), options.from);
  if (!options.ssh.empty()) profile["ssh"] = options.ssh;
  for (const std::string& setting : options.settings) apply_override(profile, setting);
  save_host(options.name, profile, options.replace);
  const std::string file = host_file(options.name).string();
  print_result({{"name", options.name}, {"file", file}}, file + "\ntry it: saccade host test " + options.name);
  return 0;
}

/// "connected", "offline, as of 2026-11-25T14:05:00Z"
std::string state_text(const std::optional<MirrorState>& mirror) {
  if (!mirror || mirror->seen.empty()) return "never connected";
  return mirror->connected ? "connected" : "offline, as of " + mirror->seen;
}

int list_hosts(const Options&) {
  Json json = Json::array();
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& name : host_names()) try {
      const HostProfile profile = load_host(name);
      const std::optional<MirrorState> mirror = read_mirror(mirror_folder(name));
      json.push_back({{"name", name},
                      {"file", host_file(name).string()},
                      {"profile", host_schema().write(profile)},
                      {"mirror", mirror_folder(name).string()},
                      {"folder", mirror ? mirror->folder : ""},
                      {"connected", mirror && mirror->connected},
                      {"seen", mirror ? mirror->seen : ""},
                      {"problem", mirror ? mirror->problem : ""}});
      rows.emplace_back(name, "ssh " + profile.ssh + ", " + state_text(mirror) + ", runs in " + mirror_folder(name).string());
    } catch (const Error& error) {
      json.push_back({{"name", name}, {"file", host_file(name).string()}, {"problem", error.what()}});
      rows.emplace_back(name, error.what());
    }
  print_result(json, rows.empty() ? "no host is set up; begin with: saccade host add NAME --ssh ALIAS" : list(rows));
  return 0;
}

int show(const Options& options) {
  const Json profile = host_schema().write(load_host(options.name));
  std::vector<std::vector<std::string>> rows;
  for (const Setting& setting : host_schema().settings()) rows.push_back({setting.name, shown(profile.at(setting.name)), setting.help});
  print_result({{"name", options.name}, {"file", host_file(options.name).string()}, {"profile", profile}},
               host_file(options.name).string() + "\n" + table({"setting", "value", ""}, rows));
  return 0;
}

/// What an agent says under a key, which may be anything.
std::string said(const Json& head, const char* key) { return head.contains(key) ? shown(head.at(key)) : ""; }

std::string joined(const Json& lines, const std::string& none) {
  std::string text;
  for (const Json& line : lines) text += (text.empty() ? "" : "; ") + shown(line);
  return text.empty() ? none : text;
}

/// Logs in anew, whatever channel there is, and asks what people want to know before they train there.
int test(const Options& options) {
  const double begin = now();
  const auto channel = Channel::open_ssh(load_host(options.name));
  Json facts = channel->ask({{"ask", "machine"}}).head;
  facts.erase("id");
  const Json& agent = channel->agent();
  const double seconds = now() - begin;
  const std::string old = channel->read_only(), folder = joined(agent.value("folders", Json::array()), "none");
  Json json{{"name", options.name}, {"seconds", seconds}, {"agent", agent}, {"read_only", old}, {"machine", facts}};
  const auto bytes = [&](const char* key) {
    const Json value = facts.value(key, Json());
    return value.is_number() ? human_bytes(value.get<double>()) : std::string("unknown");
  };
  print_result(json, list({{"host", said(agent, "host") + ", answered in " + number(seconds, 2) + " s"},
                           {"saccade", said(agent, "version") + (old.empty() ? "" : "; " + old)},
                           {"GPU", joined(facts.value("gpus", Json::array()), "none; training runs on the CPU")},
                           {"processor", said(facts, "processor") + ", " + said(facts, "threads") + " threads"},
                           {"memory", bytes("memory_bytes")},
                           {"runs", folder + ", " + bytes("disk_free_bytes") + " free"},
                           {"Slurm", joined(facts.value("partitions", Json::array()), "none")}}));
  return 0;
}

bool input_has_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

/// As long as the channel stands: looks for news every poll_seconds, and fetches what is missing in between.
void follow(Mirror& mirror, Channel& channel, int64_t poll_seconds, const std::function<bool()>& ended) {
  while (!ended()) {
    const double next = now() + static_cast<double>(poll_seconds);
    mirror.update(channel);
    for (double left = static_cast<double>(poll_seconds); left > 0 && !ended(); left = next - now())
      if (!mirror.fetch_some(channel)) channel.wait(static_cast<int>(std::min(200.0, 1000 * left)));
    mirror.note_seen();
  }
}

int watch(const Options& options, Mirror& mirror, const HostProfile& profile) {
  constexpr double kLongestPause = 15;
  catch_stop_signals();
  const auto ended = [&] { return stop_requested() || (options.until_eof && input_has_ended()); };
  for (double pause = 1; !ended(); pause = std::min(2 * pause, kLongestPause)) {
    try {
      const auto channel = Channel::open_ssh(profile);
      const Relay relay(*channel, channel_socket(options.name));
      mirror.connected(*channel);
      pause = 0.5;
      say(utc_now() + " connected to " + options.name);
      follow(mirror, *channel, profile.poll_seconds, ended);
      mirror.offline("nobody keeps the mirror; saccade host sync " + options.name + " --watch does");
    } catch (const Error& error) {
      mirror.offline(error.what());
      say(utc_now() + " " + error.what() + "; the next try comes in " + number(pause, 0) + " s");
    }
    for (const double until = now() + pause; now() < until && !ended();) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return stop_requested() ? 130 : 0;
}

int sync(const Options& options) {
  const HostProfile profile = load_host(options.name);
  Mirror mirror(options.name, profile);
  if (!mirror.keep()) throw Error("another process keeps the mirror of " + options.name + " already: " + mirror.root().string());
  if (options.watch) return watch(options, mirror, profile);
  const auto channel = Channel::open_ssh(profile);
  const double begin = now();
  mirror.connected(*channel);
  const int64_t news = mirror.update(*channel);
  const double seconds = now() - begin;  // until all runs are listed, with their journals
  while (mirror.fetch_some(*channel)) mirror.note_seen();
  mirror.offline("nobody keeps the mirror; saccade host sync " + options.name + " --watch does");
  print_result({{"name", options.name},
                {"runs", mirror.runs()},
                {"mirror", mirror.root().string()},
                {"seconds", seconds},
                {"bytes", channel->bytes_read()}},
               counted(mirror.runs(), "run") + " of " + options.name + " in " + mirror.root().string() + "; " + counted(news, "folder") +
                   " looked at, " + human_bytes(static_cast<double>(channel->bytes_read())) + " received");
  return 0;
}

/// What does not come by itself.
int fetch(const Options& options) {
  const std::optional<OnHost> run = on_host(options.run);
  if (!run) throw UsageError(options.run + " is not mirrored from a host");
  const HostProfile profile = load_host(run->host);
  const auto channel = Channel::open(run->host, profile);
  Mirror mirror(run->host, profile);
  std::vector<std::string> files;
  for (const int64_t step : options.captures) files.push_back("captures/step-" + std::to_string(step) + ".h5");
  for (const int64_t step : options.checkpoints) files.push_back("checkpoints/step-" + std::to_string(step) + ".h5");
  if (files.empty()) files.push_back("results.h5");
  Json json = Json::array();
  std::string text;
  for (const std::string& file : files) {
    mirror.fetch(*channel, run->name + "/" + file);
    const std::string here = (mirror.root() / run->name / file).string();
    json.push_back(here), text += here + "\n";
  }
  print_result({{"files", json}}, text);
  return 0;
}

int remove(const Options& options) {
  remove_host(options.name);
  print_result({{"name", options.name}},
               options.name + " is removed; what was mirrored of it stays in " + mirror_folder(options.name).string());
  return 0;
}

void declare_all(const auto& declare) {
  using Shared = std::shared_ptr<Options>;
  const auto named = [](CLI::App& sub, const Shared& o) { sub.add_option("NAME", o->name, "The host's name")->required(); };
  const auto step = CLI::Range(int64_t{0}, int64_t{1'000'000'000});
  declare("add", "Set a host up: its profile is a JSON file in the config folder.", add, [=](CLI::App& sub, const Shared& o) {
    named(sub, o);
    sub.add_option("--ssh", o->ssh, "What ssh calls it: an alias of its config, or user@machine");
    one_at_a_time(sub.add_option("--set", o->settings, "A setting of the profile (saccade host show): --set folder=runs"), "KEY=VALUE");
    sub.add_option("--from", o->from, "A profile to begin with");
    sub.add_flag("--replace", o->replace, "Write it anew where it is there already");
  })->footer("Example: saccade host add server --ssh me@server.example.org --set folder=runs");
  declare("list", "Hosts that are set up, and whether they are connected.", list_hosts, [](CLI::App&, const Shared&) {});
  declare("show", "Every setting of a profile, with what it means.", show, named)->footer("Example: saccade host show server");
  declare("test", "Log in, and say what is there: GPU, driver, version, disk, partitions.", test, named)
      ->footer("Example: saccade host test server");
  declare(
      "copy", "Copy this program to the host, as a bundle that needs nothing installed.",
      [](const Options& o) { return copy_to_host(o.name, o.bundle); },
      [=](CLI::App& sub, const Shared& o) {
        named(sub, o);
        sub.add_option("BUNDLE", o->bundle, "Folder or .tar.gz of packaging/bundle (default: the one that this program is of)");
      })
      ->footer("Example: saccade host copy server saccade.tar.gz");
  declare("sync", "Mirror the host's runs into the runs folder.", sync, [=](CLI::App& sub, const Shared& o) {
    named(sub, o);
    sub.add_flag("--watch", o->watch, "Go on until it is stopped; connects again by itself");
    sub.add_flag("--until-eof", o->until_eof, "With --watch: until standard input ends, too")->group("");
  })->footer("Example: saccade host sync server --watch");
  declare("fetch", "Fetch files of a mirrored run that do not come by themselves.", fetch, [=](CLI::App& sub, const Shared& o) {
    sub.add_option("RUN", o->run, "Mirrored run directory")->required();
    sub.add_option("--capture", o->captures, "Step of a capture")->check(step);
    sub.add_option("--checkpoint", o->checkpoints, "Step of a checkpoint")->check(step);
  })->footer("Example: saccade host fetch runs/server/first --checkpoint 500");
  declare("remove", "Forget a host; what was mirrored of it stays.", remove, named)->footer("Example: saccade host remove server");
}

const RegisterCommand command{{"host", "Machines that are reached over ssh, and their runs mirrored here.",
                               "saccade host add server --ssh me@server.example.org", [](CLI::App& app) {
                                 auto chosen = std::make_shared<std::function<int()>>();
                                 app.require_subcommand(1);
                                 declare_all([&](const std::string& name, const std::string& summary, auto perform, auto options_of) {
                                   CLI::App* sub = app.add_subcommand(name, summary);
                                   auto options = std::make_shared<Options>();
                                   options_of(*sub, options);
                                   sub->callback(
                                       [chosen, options, perform] { *chosen = [options, perform] { return perform(*options); }; });
                                   return sub;
                                 });
                                 return [chosen] { return (*chosen)(); };
                               }}};

}  // namespace
}  // namespace saccade::cli

#include "app/cli/host_call.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <random>
#include <thread>

#include "analysis/remote/mirror.h"
#include "analysis/runs/run_origin.h"
#include "app/cli/command.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kCommandSeconds = 180, kInspectionSeconds = 600;
constexpr int kTries = 5;

/// Whether nothing is done twice when it is asked for twice, its first answer lost.
bool may_be_repeated(const Json& request) {
  const std::string ask = request.at("ask");
  return ask != "queue" && ask != "study-seeds";
}

/// For those that read runs here next.
void mirror_now(const std::string& host, const HostProfile& profile, Channel& channel) {
  Mirror mirror(host, profile);
  if (!mirror.keep()) return;  // another process does
  mirror.connected(channel);
  mirror.update(channel);
  mirror.offline("nobody keeps the mirror; saccade host sync " + host + " --watch does");
}

}  // namespace

std::optional<OnHost> on_host(const fs::path& folder) {
  const std::optional<MirrorState> mirror = mirror_of(folder);
  if (!mirror) return {};
  fs::path at = fs::absolute(folder).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  return OnHost{mirror->host, at.lexically_relative(mirror->root).string()};
}

Frame ask_host(const std::string& host, Json request, double seconds) {
  const HostProfile profile = load_host(host);
  for (int tries = may_be_repeated(request) ? kTries : 1;; --tries) try {
      const auto channel = Channel::open(host, profile);
      Frame answer = channel->ask(request, "", seconds > 0 ? seconds : kCommandSeconds);
      mirror_now(host, profile, *channel);
      return answer;
    } catch (const ChannelLost& error) {
      if (tries <= 1) throw;
      say(std::string(error.what()) + "; asked again");
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

int print_host_answer(const std::string& host, Json request, double seconds) {
  request["text"] = !json_output();
  const Frame answer = ask_host(host, std::move(request), seconds);
  const Json json = json_output() ? Json::parse(answer.body, nullptr, false) : Json();
  print_result(json.is_discarded() ? Json() : json, answer.body);
  return 0;
}

std::string new_token() {
  std::random_device random;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return digits;
}

int print_begun(const std::string& host, const std::string& name, const Frame& answer) {
  const fs::path here = mirror_folder(host) / name;
  const Json said = answer.head.value("directory", Json());
  const std::string there = said.is_string() ? said.get<std::string>() : name;
  print_result({{"directory", here.string()}, {"host", host}, {"there", there}},
               here.string() + ": on " + host + " as " + there + "\nfollow it: saccade host sync " + host + " --watch");
  return 0;
}

int start_on_host(const std::string& host, const fs::path& out, const Json& config, bool queue) {
  const HostProfile profile = load_host(host);
  const std::string name = (out.has_filename() ? out : out.parent_path()).filename().string();
  Json request{{"ask", "start"},       {"name", name},   {"config", config},
               {"token", new_token()}, {"queue", queue}, {"cluster", profile.cluster}};
  return print_begun(host, name, ask_host(host, std::move(request)));
}

int relay_inspection(const OnHost& run, int64_t checkpoint) {
  const auto channel = Channel::open(run.host, load_host(run.host));
  const std::string session = new_token();
  channel->ask({{"ask", "inspect"}, {"run", run.name}, {"checkpoint", checkpoint}, {"session", session}});
  for (std::string line; std::getline(std::cin, line);) {
    const std::string answer =
        channel->ask({{"ask", "inspect-line"}, {"session", session}}, std::move(line), kInspectionSeconds).body + "\n";
    if (std::fwrite(answer.data(), 1, answer.size(), stdout) != answer.size() || std::fflush(stdout) != 0)
      throw Error("nobody takes the answers");
  }
  channel->ask({{"ask", "inspect-end"}, {"session", session}});
  return 0;
}

}  // namespace saccade::cli

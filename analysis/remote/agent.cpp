#include "analysis/remote/agent.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "analysis/remote/file_pieces.h"
#include "analysis/remote/machine_facts.h"
#include "analysis/runs/provenance.h"
#include "analysis/runs/run_lock.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int kMostAtWork = 16;
constexpr size_t kMostSessions = 8, kPart = 128 * 1024;

/// What the answer to a request that failed has in its head.
template <class F>
Frame or_error(F answer) {
  try {
    return answer();
  } catch (const Error& error) {
    return {Json{{"error", error.what()}, {"code", error.exit_code()}}, ""};
  } catch (const Json::exception&) {
    return {Json{{"error", "the request lacks something, or has it in another form"}, {"code", 2}}, ""};
  } catch (const std::exception& error) {
    return {Json{{"error", error.what()}, {"code", 1}}, ""};
  }
}

std::string session_of(const Json& request) { return request.at("session"); }

}  // namespace

Agent::Agent(AgentOptions options) : options_(std::move(options)), commands_(options_.program) {
  for (const fs::path& folder : options_.folders) folders_.emplace_back(folder);
}

const ServedFolder& Agent::folder_of(const Json& request) const {
  const uint64_t number = request.value("folder", uint64_t{0});
  if (number >= folders_.size()) throw UsageError("/folder is none that is served here");
  return folders_[number];
}

Frame Agent::runs(const Json& request) {
  RunListing now = list_served(folder_of(request)), none;
  const bool changes = request.value("changes", false);
  const Json answer = listing_changes(changes ? told_[request.value("folder", size_t{0})] : none, std::move(now));
  return {Json::object(), answer.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Frame Agent::answer(const Json& request) {
  return or_error([&]() -> Frame {
    const std::string ask = request.at("ask");
    if (ask == "runs") return runs(request);
    if (ask == "read") return read_pieces(folder_of(request), request);
    if (ask == "hash") return {Json{{"sha256", whole_hash(folder_of(request).open(request.at("file")))}}, ""};
    if (ask != "hello") throw UsageError("this agent does not know " + ask.substr(0, 40));
    Json folders = Json::array();
    for (const ServedFolder& folder : folders_) folders.push_back(folder.path().string());
    return {Json{{"protocol", kAgentProtocol},
                 {"version", library_versions().value("saccade", SACCADE_VERSION)},
                 {"host", host_name()},
                 {"program", options_.program.string()},
                 {"folders", folders}},
            ""};
  });
}

Frame Agent::inspect(const Frame& request) {
  const std::string ask = request.head.at("ask"), session = session_of(request.head);
  std::shared_ptr<InspectRelay> relay;
  {
    const std::lock_guard<std::mutex> lock(sessions_lock_);
    if (ask == "inspect") {
      if (sessions_.size() >= kMostSessions) throw Error("too many inspections at a time");
      const fs::path run = folder_of(request.head).folder(request.head.at("run"));
      sessions_[session] = std::make_shared<InspectRelay>(options_.program, run, request.head.value("checkpoint", int64_t{0}));
      return {};
    }
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) throw UsageError("there is no such inspection");
    relay = found->second;
    if (ask == "inspect-end") sessions_.erase(found);
  }
  return ask == "inspect-end" ? Frame{} : Frame{Json::object(), relay->answer(request.body)};
}

Frame Agent::slow_answer(const Frame& request) {
  return or_error([&]() -> Frame {
    const std::string ask = request.head.at("ask");
    if (ask == "machine") return {machine_facts(folder_of(request.head).path(), options_.gpu_command), ""};
    if (ask.starts_with("inspect")) return inspect(request);
    return commands_.perform(folder_of(request.head), request.head);
  });
}

/// In parts, so that answers of others come between.
void Agent::send(Frame frame, const Json& id) {
  frame.head["id"] = id;
  for (size_t at = 0;; at += kPart) {
    const bool last = at + kPart >= frame.body.size();
    Frame part{last ? frame.head : Json{{"id", id}, {"part", true}}, frame.body.substr(at, kPart)};
    const std::lock_guard<std::mutex> lock(out_lock_);
    if (!write_all(out_, frame_bytes(part))) ::_exit(0);  // nobody is there any more
    if (last) return;
  }
}

void Agent::take(const Frame& request) {
  const Json id = request.head.value("id", Json());
  const Json ask = request.head.value("ask", Json());
  const std::string word = ask.is_string() ? ask.get<std::string>() : "";
  const bool slow = word == "machine" || word == "inspect" || word.starts_with("inspect-") || AgentCommands::knows(word);
  if (!slow) return send(answer(request.head), id);
  if (++at_work_ > kMostAtWork) {
    --at_work_;
    return send({Json{{"error", "too many requests at a time"}, {"code", 1}}, ""}, id);
  }
  std::thread([this, request, id] {
    send(slow_answer(request), id);
    --at_work_;
  }).detach();
}

void Agent::serve(int in, int out) {
  out_ = out;
  if (!write_all(out, kAgentGreeting)) return;
  FrameReader reader;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::read(in, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    reader.take({buffer.data(), static_cast<size_t>(got)});
    while (const std::optional<Frame> request = reader.next()) take(*request);
  }
  const std::lock_guard<std::mutex> lock(sessions_lock_);
  for (const auto& [name, relay] : sessions_) relay->kill();
}

}  // namespace saccade

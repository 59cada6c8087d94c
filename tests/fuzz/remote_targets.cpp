#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "analysis/remote/agent.h"
#include "analysis/remote/channel.h"
#include "analysis/remote/mirror.h"
#include "analysis/runs/run_origin.h"
#include "tests/fuzz/targets.h"

namespace saccade::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* kSecret = "what lies outside";

std::vector<std::string> frames_of(std::string_view bytes, size_t at_a_time) {
  FrameReader reader;
  std::vector<std::string> frames;
  try {
    for (size_t at = 0; at < bytes.size(); at += at_a_time) {
      reader.take(bytes.substr(at, at_a_time));
      while (const std::optional<Frame> frame = reader.next()) frames.push_back(frame_bytes(*frame));
    }
  } catch (const Error&) {
    frames.emplace_back("refused");
  }
  return frames;
}

/// The same frames however they arrive, and the same again when they are sent on.
void agent_frame(std::string_view bytes) {
  const std::vector<std::string> whole = frames_of(bytes, std::max<size_t>(1, bytes.size()));
  require(frames_of(bytes, 3) == whole, "other frames when they come in pieces");
  for (const std::string& frame : whole)
    if (frame != "refused") require(frames_of(frame, frame.size()) == std::vector{frame}, "a frame is another when it is sent on");
}

/// A folder with a run, a file beside it that nobody may have, and a link to that.
const fs::path& served() {
  static const fs::path folder = [] {
    written("outside.txt", kSecret);
    written("served/first/run.json", "{}");
    written("served/first/journal.jsonl", "{\"n\":0}\n");
    fs::create_symlink(fuzz_folder() / "outside.txt", fuzz_folder() / "served/first/log.txt");
    fs::create_directory_symlink(fuzz_folder(), fuzz_folder() / "served/first/captures");
    return fuzz_folder() / "served";
  }();
  return folder;
}

/// The head of a request that is answered at once.
void agent_request(std::string_view bytes) {
  const Json request = Json::parse(bytes, nullptr, false);
  if (!request.is_object()) return;
  Agent agent({{served()}, "/bin/false", "true"});
  const Frame answer = agent.answer(request);
  static_cast<void>(frame_bytes(answer));
  require(answer.body.find(kSecret) == std::string::npos, "something from outside the served folder");
}

/// What is accepted is the same when it is written and read again.
void run_origin(std::string_view bytes) {
  written("mirrored/first/origin.json", bytes);
  const fs::path run = fuzz_folder() / "mirrored/first";
  const std::optional<RunOrigin> once = read_run_origin(run);
  require(once.has_value(), "an origin that is there is none");
  write_run_origin(run, *once);
  require(read_run_origin(run) == once, "an origin is another when it is read again");
}

void mirror_state(std::string_view bytes) {
  written("mirrored/mirror.json", bytes);
  const std::optional<MirrorState> once = mirror_of(fuzz_folder() / "mirrored/first");
  require(once && once->root == fuzz_folder() / "mirrored", "a mirror is another folder");
  write_mirror(*once);
  const std::optional<MirrorState> again = read_mirror(once->root);
  require(again && again->seen == once->seen && again->problem == once->problem, "a mirror's state is another when it is read again");
}

/// What an agent answers while a mirror is brought up to date: whatever it says, nothing but the mirror is written.
void agent_answers(std::string_view bytes) {
  static const fs::path folder = [] {
    ::setenv("SACCADE_RUNS", (fuzz_folder() / "mirrors" / "runs").c_str(), 1);
    return fuzz_folder() / "mirrors";
  }();
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no sockets");
  Descriptor here(ends[0]), there(ends[1]);
  const std::string said = std::string(kAgentGreeting) + std::string(bytes.substr(0, 60'000));
  require(write_all(there.get(), said) && ::shutdown(there.get(), SHUT_WR) == 0, "the answers cannot be sent");
  Descriptor also(::fcntl(here.get(), F_DUPFD_CLOEXEC, 0));
  Channel channel(std::move(here), std::move(also), 5);
  try {
    Mirror mirror("far", {});
    mirror.update(channel);
    while (mirror.fetch_some(channel)) {
    }
  } catch (const Error&) {
  }
  for (const auto& entry : fs::directory_iterator(folder)) require(entry.path().filename() == "runs", "something beside the mirror");
  for (const auto& entry : fs::directory_iterator(folder / "runs"))
    require(entry.path().filename() == "far", "something beside the mirror");
  fs::remove_all(folder / "runs");
}

}  // namespace

std::vector<FuzzTarget> remote_targets() {
  return {{"agent_answers", agent_answers, 400},
          {"agent_frame", agent_frame},
          {"agent_request", agent_request},
          {"run_origin", run_origin},
          {"mirror_state", mirror_state}};
}

}  // namespace saccade::test

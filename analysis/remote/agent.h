#pragma once
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analysis/remote/agent_commands.h"
#include "analysis/remote/frame.h"
#include "analysis/remote/inspect_relay.h"
#include "analysis/remote/run_listing.h"
#include "analysis/remote/served_folder.h"

namespace saccade {

/// What the two ends of a channel agree on. It grows by one when an agent learns something that the other end needs; an agent with a
/// smaller one is only read from.
inline constexpr int64_t kAgentProtocol = 1;

struct AgentOptions {
  std::vector<std::filesystem::path> folders;  ///< served, by their number
  std::filesystem::path program;               ///< this one
  std::string gpu_command;                     ///< machine_facts()
};

/// Answers what comes over a channel: a request is a frame whose head has "id" and "ask", and every frame of its answer has the id.
///
///     hello                                  → protocol, version, host, folders
///     machine                                → machine_facts()
///     runs    {"changes": true}              → body: list_served(), or what is another since the last such answer
///     read    {"pieces": […]}                → read_pieces()
///     hash    {"file"}                       → sha256 of the whole
///     inspect {"run", "checkpoint", "session"}, inspect-line (body: a line), inspect-end → body: a line
///     plan, start, fork, resume, stop, study, study-stop, study-resume, study-seeds, study-evaluate,
///     queue: AgentCommands
///
/// "folder" is the number of a served folder, 0 where nothing is said. A body that is longer than one frame comes as several, all but the
/// last with "part": true. What goes wrong is answered with "error", one line, and "code", as the command line would exit.
class Agent {
 public:
  explicit Agent(AgentOptions options);
  /// Reads requests until the input ends, or is none; answers what takes long in threads meanwhile. Threads may still be at work then.
  void serve(int in, int out);
  /// The answer to one request of those that are answered at once; for tests.
  Frame answer(const nlohmann::json& request);

 private:
  void take(const Frame& request);
  Frame slow_answer(const Frame& request);
  Frame inspect(const Frame& request);
  Frame runs(const nlohmann::json& request);
  void send(Frame frame, const nlohmann::json& id);
  const ServedFolder& folder_of(const nlohmann::json& request) const;

  AgentOptions options_;
  std::vector<ServedFolder> folders_;
  AgentCommands commands_;
  std::map<size_t, RunListing> told_;  ///< of each folder, by "changes"
  std::map<std::string, std::shared_ptr<InspectRelay>> sessions_;
  std::mutex sessions_lock_, out_lock_;
  int out_ = -1;
  std::atomic<int> at_work_{0};
};

}  // namespace saccade

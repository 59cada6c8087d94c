#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/remote/channel.h"
#include "models/json.h"

namespace saccade::cli {

/// A run or study of a host, by its folder in the mirror.
struct OnHost {
  std::string host, name;  ///< of its profile; below the served folder
};
/// Nothing for what is of this machine. Throws DataError.
std::optional<OnHost> on_host(const std::filesystem::path& folder);

/// One request to the agent of a host, over the channel that is there or one of its own. What is new there afterwards is mirrored at once,
/// where no other process does that. `seconds`: until an answer, where it takes longer than the profile's.
Frame ask_host(const std::string& host, nlohmann::json request, double seconds = 0);
/// The same, and prints what the command said there. Exit code.
int print_host_answer(const std::string& host, nlohmann::json request, double seconds = 0);

/// `train … --on HOST`, or into the queue there; the run has the name of `out` in the folder that the host serves. Exit code.
int start_on_host(const std::string& host, const std::filesystem::path& out, const nlohmann::json& config, bool queue);
/// What makes a request that is sent twice the same wish.
std::string new_token();
/// Says where a run that was begun there is mirrored.
int print_begun(const std::string& host, const std::string& name, const Frame& answer);

/// `inspect RUN --serve` of a run there: lines of standard input are answered by the host's own helper. Exit code.
int relay_inspection(const OnHost& run, int64_t checkpoint);

}  // namespace saccade::cli

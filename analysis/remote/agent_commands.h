#pragma once
#include <filesystem>
#include <string>

#include "analysis/remote/frame.h"
#include "analysis/remote/served_folder.h"
#include "models/json.h"

namespace saccade {

/// What an agent does for its other end beyond reading: each request is a command of this program, put together here of checked parts. The
/// body of an answer is what the command printed (as JSON; with "text": true as people read it); a command that fails is an Error with its
/// last line and its exit code.
class AgentCommands {
 public:
  explicit AgentCommands(std::filesystem::path program) : program_(std::move(program)) {}

  /// Whether there is such a request.
  static bool knows(const std::string& ask);
  /// Throws Error; nlohmann's exceptions where something of the request is missing.
  Frame perform(const ServedFolder& folder, const nlohmann::json& request) const;

 private:
  Frame call(std::vector<std::string> words, double seconds, const nlohmann::json& request) const;
  Frame plan(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame start(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame fork(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame resume(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame study(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame go_on_with_study(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame queue(const ServedFolder& folder, const nlohmann::json& request) const;
  Frame begin(const std::filesystem::path& run, const std::vector<std::string>& words, const std::filesystem::path& log) const;

  std::filesystem::path program_;
};

}  // namespace saccade

#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "analysis/remote/frame.h"
#include "analysis/remote/host_profile.h"
#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/json.h"

namespace saccade {

/// The host cannot be reached, or no longer: what was asked for may have been done or not.
class ChannelLost : public Error {
 public:
  using Error::Error;
};
/// What an agent answers when something goes wrong, with the exit code it would have there.
class RemoteError : public Error {
 public:
  RemoteError(const std::string& what, int code) : Error(what), code_(code) {}
  int exit_code() const override { return code_; }

 private:
  int code_;
};

/// One end of a connection to the agent of a host. Any number of requests may be under way.
class Channel {
 public:
  /// The agent started by ssh, as the user's ssh finds it: `ssh ALIAS PROGRAM agent --stdio`. $SACCADE_SSH is used in place of ssh. Where
  /// a process keeps a channel to the host already (channel_socket), that one is used instead. Throws ChannelLost with the last words of
  /// ssh.
  static std::unique_ptr<Channel> open(const std::string& name, const HostProfile& profile);
  /// By ssh in any case.
  static std::unique_ptr<Channel> open_ssh(const HostProfile& profile);
  /// Over descriptors that there are.
  Channel(Descriptor in, Descriptor out, double patience);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// What the agent said of itself: protocol, version, host, folders.
  const nlohmann::json& agent() const { return agent_; }
  /// Why nothing may be changed there: its agent is older than this program. Empty when all is well.
  std::string read_only() const;

  /// Waits for the whole answer, however many parts it has; each may take `seconds` (0: the patience of the profile). Throws RemoteError,
  /// ChannelLost, UsageError where it would change something and read_only() says no.
  Frame ask(nlohmann::json head, std::string body = {}, double seconds = 0);
  /// Does not wait: `then` is called by wait() with every frame of the answer.
  void send(nlohmann::json head, std::string body, std::function<void(Frame)> then);
  /// Moves bytes for so long at most, until something came. Throws ChannelLost.
  void wait(int milliseconds);
  /// Another descriptor that wait() waits for, and what it calls then.
  void attend(int descriptor, std::function<void()> then);

  int64_t bytes_read() const { return read_; }
  int64_t bytes_written() const { return written_; }

 private:
  void greet();
  void read();
  void write();
  [[noreturn]] void lose(const std::string& why);

  Descriptor in_, out_, errors_;
  pid_t process_ = -1;
  double patience_;
  FrameReader reader_{true};
  std::string unwritten_, words_;
  std::map<int64_t, std::function<void(Frame)>> waiting_;
  int64_t next_id_ = 1, read_ = 0, written_ = 0;
  nlohmann::json agent_ = nlohmann::json::object();
  int attended_ = -1;
  std::function<void()> attend_;
};

/// Where the process that keeps the channel to a host listens for others of the same user (a Unix socket in a folder of theirs).
std::filesystem::path channel_socket(const std::string& name);

/// The words that start a program on the host: ssh, its alias, and `command` for the shell there.
std::vector<std::string> ssh_command(const HostProfile& profile, const std::string& command);
/// A word as a shell takes it.
std::string shell_quoted(const std::string& word);
/// A path as a shell takes it, that may begin with ~/.
std::string shell_path(const std::string& path);

}  // namespace saccade

#pragma once
#include <filesystem>
#include <map>
#include <memory>

#include "analysis/remote/channel.h"

namespace saccade {

/// Lets other processes of this user ask the agent of a host over the channel that this one keeps, so that a host is logged into once: a
/// Unix socket in a folder that is theirs alone. Their requests and answers go between this process' own.
class Relay {
 public:
  /// Where nobody can listen at `socket` (a path that is too long), others log in by themselves.
  Relay(Channel& channel, std::filesystem::path socket);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  struct Client;
  void attend();
  void accept();
  void read(const std::shared_ptr<Client>& client);
  void take(const std::shared_ptr<Client>& client, Frame request);
  void answer(const std::shared_ptr<Client>& client, Frame frame);
  void write(const std::shared_ptr<Client>& client);
  void close(int file);

  Channel& channel_;
  std::filesystem::path path_;
  Descriptor events_, listening_;
  std::map<int, std::shared_ptr<Client>> clients_;
};

}  // namespace saccade

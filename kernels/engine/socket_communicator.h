#pragma once
#include <memory>
#include <vector>

#include "kernels/engine/communicator.h"
#include "kernels/engine/rank_watch.h"

namespace saccade {

/// A socket that closes itself.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Connected stream sockets (Unix or TCP) from one rank to every other, by rank; none at its own place.
struct RankSockets {
  int rank = 0;
  std::vector<Socket> data, watch;
  int size() const { return static_cast<int>(data.size()); }
};

/// Those of all ranks, connected in this process, for its children or its threads. Throws Error.
std::vector<RankSockets> connected_ranks(int count);

/// A Communicator for tensors on the CPU over sockets. What ranks say begins with the number and the kind of the call and how many bytes
/// follow, so that ranks that are not at the same call find out. Byte order and sizes are those of x86-64, which all ranks run on.
class SocketCommunicator : public Communicator {
 public:
  /// Says and hears the names of all ranks (process and host). What the calling thread does is the rank's progress from now on. Throws as
  /// every call does.
  explicit SocketCommunicator(RankSockets sockets, RankWatchOptions options = {});
  ~SocketCommunicator() override;

  void all_to_all(Device device, const Parts& send, const Parts& receive) override;  ///< on the CPU alone, else std::logic_error
  std::string broadcast(const std::string& bytes) override;
  bool any(bool here) override;

  const std::string& name(int rank) const { return names_[static_cast<size_t>(rank)]; }  ///< "rank 2 (process 4711 on node7)"

 private:
  struct Piece {
    char* data;
    size_t bytes;
  };
  using Pieces = std::vector<std::vector<Piece>>;
  struct Stream;
  void exchange(char kind, Pieces send, Pieces receive);
  void move(Stream& stream, int peer, Stream* answer);
  [[noreturn]] void fail(int peer, const std::string& what);

  RankSockets sockets_;
  std::vector<std::string> names_;
  uint64_t call_ = 0;
  Progress progress_;  ///< of the thread that has made this and calls it
  std::unique_ptr<RankWatch> watch_;
};

}  // namespace saccade

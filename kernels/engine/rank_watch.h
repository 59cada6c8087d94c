#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace saccade {

/// How long ranks wait for each other, and what happens when one is lost.
struct RankWatchOptions {
  double silence = 15;  ///< seconds without a sign of life after which a rank counts as hung
  double grace = 10;    ///< seconds from `lost` to `overdue`
  /// Called once, by a thread of the watch's own, with a line that names the rank, its process and its host.
  std::function<void(const std::string& line)> lost = {};
  /// Called when the watch still stands so long after `lost`: this rank is busy with something else and must be ended.
  std::function<void(const std::string& line)> overdue = {};
};

/// Tells whether the other ranks live: a thread sends every one of them a byte twice a second and reads theirs. A process that ended closes
/// its sockets, one that is stopped (SIGSTOP) or on a host that is gone falls silent. A thread of its own says nothing about what the rank
/// computes: a slow step is no silence. When this process itself was stopped, the others are given new time.
class RankWatch {
 public:
  /// `sockets`, by rank, belong to the caller, are for the watch alone and outlive it; -1 at this rank. `names` as messages have them.
  RankWatch(int rank, std::vector<int> sockets, std::vector<std::string> names, RankWatchOptions options, std::function<void()> wake);
  /// Says goodbye: from now on the others take this rank's end for a good one, unless a rank was lost.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// What happened to the first rank that was lost. Waits so many seconds for it to be known.
  std::optional<std::string> lost(double seconds = 0);

 private:
  struct Peer {
    int socket = -1;
    std::string name;
    double heard = 0;  ///< when
    bool gone = false;
    std::string bytes = {};  ///< read and not yet understood
  };
  void watch();
  void send(Peer& peer, char kind, int rank);
  void hear(size_t rank);
  void lose(size_t rank, const std::string& what);
  void wait(double seconds);

  const size_t rank_;
  std::vector<Peer> peers_;
  const RankWatchOptions options_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> lost_;  ///< guarded by mutex_, as is ending_
  bool ending_ = false;
  size_t lost_rank_ = 0;
  double lost_at_ = 0;
  bool overdue_told_ = false;
  std::thread thread_;  ///< last: reads what is above
};

}  // namespace saccade

#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/engine/progress.h"

namespace saccade {

/// How long ranks wait for each other, and what happens when one is lost.
struct RankWatchOptions {
  double silence = 15;  ///< seconds without a sign of life, or without progress where that is usual, after which a rank counts as hung
  double grace = 10;    ///< seconds from `lost` to `overdue`
  /// Called once, by a thread of the watch's own, with a line that names the rank, its process and its host.
  std::function<void(const std::string& line)> lost = {};
  /// Called when the watch still stands so long after `lost`: this rank is busy with something else and must be ended.
  std::function<void(const std::string& line)> overdue = {};
};

/// How long a rank's computing thread has stood still, counted in the time that its signs of life cover: what a process is stopped for, or
/// a machine sleeps, is not in it.
class Standstill {
 public:
  void see(const Progress::Seen& seen, double time);
  double seconds() const { return seconds_; }
  const Progress::Seen& last() const { return last_; }

 private:
  Progress::Seen last_;
  double seen_at_ = 0, seconds_ = 0;
};

/// How long a rank lets its own thread stand still before it hangs: kPatience times the longest stretch without a raise in work that it had
/// done before, at least `silence`; kFirstPatience times `silence` in what it does for the first or second time.
class Patience {
 public:
  static constexpr double kPatience = 5, kFirstPatience = 40;
  explicit Patience(double silence) : silence_(silence) {}
  void see(const Progress::Seen& seen, double time);
  double seconds() const;
  const Standstill& standstill() const { return standstill_; }

 private:
  const double silence_;
  double longest_ = 0;
  Standstill standstill_;
};

/// Tells whether the other ranks live and get on: a thread sends every one of them a sign of life twice a second and reads theirs. A
/// process that ended closes its sockets, one that is stopped (SIGSTOP) or on a host that is gone falls silent. A thread of its own says
/// nothing about what the rank computes, so the sign says how far its computing thread is (Progress) and how long that may stand still
/// (Patience): one that stands still for longer hangs, and is lost, when this rank has come further than it, or stands still too. Of
/// several that stand still the one that is furthest behind is named. When this process itself was stopped, the others are given new time.
class RankWatch {
 public:
  /// `sockets`, by rank, belong to the caller, are for the watch alone and outlive it, as does `here`; -1 at this rank. `names` as messages
  /// have them.
  RankWatch(int rank, std::vector<int> sockets, std::vector<std::string> names, const Progress& here, RankWatchOptions options,
            std::function<void()> wake);
  /// Says goodbye: from now on the others take this rank's end for a good one, unless a rank was lost.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// What happened to the first rank that was lost. Waits so many seconds for it to be known.
  std::optional<std::string> lost(double seconds = 0);

 private:
  struct Sign;
  struct Peer {
    int socket = -1;
    std::string name;
    double heard = 0;  ///< when
    bool gone = false;
    std::string bytes = {};  ///< read and not yet understood
    Standstill standstill = {};
    double patience = 0;  ///< seconds, as it says
  };
  enum class Loss { ended, hung, gives_this_up };
  void watch();
  void send(Peer& peer, char kind, size_t rank);
  void send_signs_of_life();
  void hear(size_t rank);
  void understand(size_t rank, const Sign& sign);
  void lose(size_t rank, const std::string& what, Loss loss = Loss::ended);
  void find_silent();
  void find_hung();
  bool hangs(const Peer& peer) const;
  bool is_furthest_behind(size_t rank) const;
  void tell_overdue();
  void wait(double seconds);

  const size_t rank_;
  std::vector<Peer> peers_;
  const Progress& here_;
  const RankWatchOptions options_;
  const std::function<void()> wake_;
  Patience patience_;
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

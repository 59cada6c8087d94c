#pragma once
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "analysis/runs/files.h"
#include "analysis/runs/lease_holder.h"
#include "kernels/engine/error.h"

namespace saccade {

/// Another process writes the run. An exit code of its own, so that a batch job that was submitted twice leaves without harm, and says so.
inline constexpr int kRunInUse = 5;
class RunInUse : public DataError {
 public:
  using DataError::DataError;
  int exit_code() const override { return kRunInUse; }
};

/// What one who takes a lease brings along.
struct LeaseWish {
  bool take_over = false;                                  ///< the user says that a holder that gives no sign of life is gone
  const std::atomic<bool>* stop = nullptr;                 ///< ends waiting
  std::function<void(const std::string& line)> tell = {};  ///< hears of waiting
  std::string advice = {};                                 ///< what to do where nobody knows whether the holder is gone
};

class Lease {
 public:
  /// Takes it. `lock`: a file beside, open for writing, whose time is set to ask for the server's. `locked`: this process holds a lock
  /// there which this machine's kernel keeps, so that no other process of this machine can have the lease. Waits where the holder is known
  /// to be gone and 180 s have not passed. Throws RunInUse naming the holder, DataError.
  Lease(std::filesystem::path file, const Descriptor& lock, bool locked, const LeaseWish& wish);
  /// Gives it back, unless it was lost.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Before anything is written: throws RunInUse when another process took the lease over, DataError when that cannot be told. Nobody can
  /// have within 60 s of a sign of life, so that nothing is asked of the disk then.
  void require();
  /// Gives a sign of life now; false when the lease is lost. Throws DataError.
  bool beat();

 private:
  void take(const Descriptor& lock, bool locked, const LeaseWish& wish);
  bool create();
  void take_away(const FoundLease& judged);
  void wait_for_silence(const FoundLease& found, const Descriptor& lock, const LeaseWish& wish);
  void keep_beating();

  std::filesystem::path file_;
  LeaseHolder mine_ = this_process();
  Descriptor open_;
  std::mutex mutex_;  ///< of all below
  std::condition_variable ending_changed_;
  bool ending_ = false, lost_ = false;
  double confirmed_ = 0;  ///< when it was mine for sure, in seconds since boot, sleep included
  std::string lost_to_;
  std::thread thread_;
};

}  // namespace saccade

#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

namespace saccade {

/// How a reader judges bytes of a file that another machine writes. On NFS, Lustre and DVS the size that a reader is told lags up to a
/// minute, and the page in which the file ended before may read as zeros where bytes have come since (Linux NFS list, September 2018). So
/// a bad line near the end is "not yet" until the reader has waited; it is judged by bytes that were there when the wait began, and the
/// wait begins anew as long as the line ends beyond them.
class JournalPatience {
 public:
  using Clock = std::chrono::steady_clock;

  /// From now on so long; 0: nothing is on its way, what is bad is bad.
  void set(double seconds) { patience_ = std::chrono::duration<double>(seconds); }
  bool none() const { return patience_.count() <= 0; }

  /// A line that ends before byte `end` does not check, in a file of `size` bytes; `zeros`: it holds a zero byte. True while it may still
  /// become good. To be asked of one line again and again, until it is judged or came().
  bool not_yet(int64_t end, int64_t size, bool zeros, Clock::time_point now = Clock::now());
  bool waits() const { return waits_ || short_since_; }
  /// What was waited for is there.
  void came() { waits_.reset(); }

  /// The file is shorter than what was read of it. True while that may be an old size.
  bool shorter_not_yet(Clock::time_point now = Clock::now());
  void is_long_enough() { short_since_.reset(); }

 private:
  struct Wait {
    int64_t size;
    Clock::time_point since;
  };
  std::chrono::duration<double> patience_{0};
  std::optional<Wait> waits_;
  std::optional<Clock::time_point> short_since_;
  int64_t judged_to_ = 0;  ///< bytes for which a whole wait has passed
};

}  // namespace saccade

#include "analysis/runs/journal_patience.h"

#include <algorithm>

namespace saccade {
namespace {

constexpr int64_t kNearEnd = int64_t{64} << 10;   // pages that a reader may have got half: its own, and read ahead
constexpr int64_t kZerosNear = int64_t{4} << 20;  // zeros are what a late page reads as, even when much has come behind it

}  // namespace

bool JournalPatience::not_yet(int64_t end, int64_t size, bool zeros, Clock::time_point now) {
  size = std::max(size, end);
  if (none() || end <= judged_to_) return false;
  if (!waits_) {
    if (size - end >= (zeros ? kZerosNear : kNearEnd)) return false;
    waits_ = {size, now};
    return true;
  }
  if (end > waits_->size) waits_ = {size, now};
  if (now - waits_->since < patience_) return true;
  judged_to_ = std::max(judged_to_, waits_->size);
  waits_.reset();
  return false;
}

bool JournalPatience::shorter_not_yet(Clock::time_point now) {
  if (none()) return false;
  if (!short_since_) short_since_ = now;
  if (now - *short_since_ < patience_) return true;
  short_since_.reset();
  return false;
}

}  // namespace saccade

#pragma once
#include <atomic>

#include "kernels/engine/error.h"

namespace saccade {

/// Somebody asked the program to stop during work that has nothing to keep: a corpus, a tokenizer, a token store, a plan in the making.
class Interrupted : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 130; }
};

/// Long work of that kind looks at `stop` from now on, which must live as long as the program. Without it nothing is interrupted.
void heed_stop(const std::atomic<bool>& stop);
bool stop_asked();
/// Throws Interrupted when a stop was asked for.
void stop_here_if_asked();

}  // namespace saccade

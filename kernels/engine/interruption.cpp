#include "kernels/engine/interruption.h"

namespace saccade {
namespace {

std::atomic<const std::atomic<bool>*> heeded{nullptr};

}  // namespace

void heed_stop(const std::atomic<bool>& stop) { heeded = &stop; }

bool stop_asked() {
  const std::atomic<bool>* stop = heeded;
  return stop && *stop;
}

void stop_here_if_asked() {
  if (stop_asked()) throw Interrupted("stopped before there was anything to keep");
}

}  // namespace saccade

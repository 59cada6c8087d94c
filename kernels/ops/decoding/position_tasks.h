#pragma once
#include "kernels/engine/parallel.h"
#include "kernels/engine/token_position.h"

namespace saccade {

/// for_positions where each sequence is work enough for a task: those with positions of their own several at a time.
template <class F>
void for_positions_at_once(const TokenPosition& position, int64_t batch, F&& f) {
  if (!position.differs()) return f(int64_t{0}, batch, position.first);
  parallel_for(batch, [&](int64_t b) { f(b, int64_t{1}, position.of(b)); });
}

}  // namespace saccade

#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// The recurrent state that an op starts from, and what becomes of it.
struct CarriedState {
  Tensor start = {};      ///< empty: zeros
  bool want_end = false;  ///< the op returns the state after the last token
  bool in_place = false;  ///< incremental decoding: the state after the last token overwrites `start`; no gradient
};

}  // namespace saccade

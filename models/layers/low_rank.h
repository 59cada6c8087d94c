#pragma once
#include "kernels/ops/elementwise/elementwise.h"
#include "models/layers/rwkv_depth.h"
#include "models/model.h"

namespace saccade {

/// y = start + up · f(down · x), a gate of RWKV-7 (arXiv:2503.14456, section 3).
struct LowRank {
  Tensor start, down, up;  ///< [C] or empty, [R, C], [C, R]
  Tensor operator()(Tape& tape, const Tensor& x, Activation f) const;
};

/// Parameters NAME [C] unless `start` is empty, NAME_down [R, C], zeros, and NAME_up [C, R], with the initial values of RWKV-LM.
LowRank make_low_rank(ParameterMaker& make, const std::string& name, int64_t width, int64_t rank,
                      const std::function<double(uint64_t)>& start);
/// The rank that is set, else factor · √width to the nearest multiple of 32, at least 32 (RWKV-LM).
int64_t low_rank(int64_t set, double factor, int64_t width);

/// What RWKV-7's time mix begins with (RWKV-LM), whatever stands in its recurrence's place.
Tensor rwkv7_blend(ParameterMaker& make, const RwkvDepth& depth, const std::string& part, double factor);  ///< μ [C] of a token shift
LowRank rwkv7_value_blend(ParameterMaker& make, const RwkvDepth& depth, int64_t rank);                     ///< 0: 1.7 √width
LowRank rwkv7_output_gate(ParameterMaker& make, const RwkvDepth& depth, int64_t rank);                     ///< 0: 5 √width

}  // namespace saccade

#pragma once
#include <cstdint>

namespace saccade {

/// Kernels over tokens [T, C] that sum parameter gradients: a thread owns a few columns and a run of kRunTokens tokens, a block
/// kRuns runs one behind the other, and writes one partial sum.
constexpr int kRuns = 8, kRunTokens = 16, kPartTokens = kRuns * kRunTokens;

/// Partial sums over `tokens` tokens.
inline int64_t run_parts(int64_t tokens) { return (tokens + kPartTokens - 1) / kPartTokens; }

}  // namespace saccade

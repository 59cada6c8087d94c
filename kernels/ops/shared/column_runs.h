#pragma once
#include <cstdint>

namespace saccade {

/// Kernels over tokens [T, C] that sum parameter gradients: a thread owns a few columns and a run of kRunTokens consecutive tokens, a block
/// kRuns consecutive runs, and writes one partial sum.
constexpr int kRuns = 8, kRunTokens = 16, kPartTokens = kRuns * kRunTokens;

/// Number of partial sums over `tokens` tokens.
inline int64_t run_parts(int64_t tokens) { return (tokens + kPartTokens - 1) / kPartTokens; }

}  // namespace saccade

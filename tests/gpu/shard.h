#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace saccade::test {

/// Whether this process runs case `i`: with SACCADE_TEST_SHARD=k/n in the environment only every n-th does, from k on (0 ≤ k < n), so
/// that several processes share the cases of a program (tests/gpu/sanitize.py).
inline bool in_shard(size_t i) {
  unsigned k = 0, n = 1;
  if (const char* shard = std::getenv("SACCADE_TEST_SHARD")) {
    if (std::sscanf(shard, "%u/%u", &k, &n) != 2 || k >= n) {
      std::fprintf(stderr, "SACCADE_TEST_SHARD is k/n with k < n\n");
      std::exit(2);
    }
  }
  return i % n == k;
}

/// Whether a case is compared with the CPU and with a second run; with SACCADE_TEST_COMPARE=0 it only runs on the GPU, once, for a tool
/// that watches its kernels (tests/gpu/sanitize.py).
inline bool compares() {
  const char* word = std::getenv("SACCADE_TEST_COMPARE");
  return !word || std::strcmp(word, "0") != 0;
}

/// SACCADE_SHORT_CASES in the environment: for tools under which a GPU is slow, less of what looks alike.
inline bool short_cases() { return std::getenv("SACCADE_SHORT_CASES") != nullptr; }

}  // namespace saccade::test

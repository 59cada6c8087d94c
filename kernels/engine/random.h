#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace saccade {

__extension__ typedef unsigned __int128 UInt128;

/// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): the value depends on (seed, stream, index) only, so
/// it is the same on every device, in any order and for any number of threads, and resuming needs no saved state.
class Random {
 public:
  /// `stream` separates purposes: initialisation of one parameter, data order, evaluation …
  Random(uint64_t seed, std::string_view stream) : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {
    for (char c : stream) stream_ = (stream_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;  // FNV-1a
  }

  /// The generator: ten rounds on a counter under a key.
  static constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> x, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
      x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ key[1],
           static_cast<uint32_t>(p0)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return x;
  }

  constexpr std::array<uint32_t, 4> block(uint64_t index) const {
    return philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(stream_),
                   static_cast<uint32_t>(stream_ >> 32)},
                  key_);
  }

  constexpr uint64_t bits(uint64_t index) const {
    const auto b = block(index);
    return (uint64_t{b[1]} << 32) | b[0];
  }
  /// In [0, 1).
  double uniform(uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1.0p-53; }
  /// In 0 … n-1.
  constexpr uint64_t below(uint64_t n, uint64_t index) const {
    return static_cast<uint64_t>((static_cast<UInt128>(bits(index)) * n) >> 64);
  }
  /// Standard normal (Box-Muller).
  double normal(uint64_t index) const {
    const auto b = block(index);
    const double u = (static_cast<double>(b[0]) + 1.0) * 0x1.0p-32, v = static_cast<double>(b[1]) * 0x1.0p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_ = 14695981039346656037ull;
};

}  // namespace saccade

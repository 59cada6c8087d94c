#pragma once
#include <cmath>
#include <cstdint>

namespace saccade {

/// Of the group norm behind the recurrence, as RWKV-LM has it: 1e-5 for a y that RWKV-5 divides by 8.
constexpr double kGroupEpsilon = 64e-5;

/// Where a layer stands among all, and a channel among C: what RWKV's initial values are formulas of (RWKV-LM).
struct RwkvDepth {
  int64_t layer, layers, width;

  double depth() const { return layers > 1 ? static_cast<double>(layer) / static_cast<double>(layers - 1) : 0; }  ///< 0 first … 1 last
  double rest() const { return 1 - static_cast<double>(layer) / static_cast<double>(layers); }                    ///< 1 first … 1/n last
  double share(uint64_t channel) const { return static_cast<double>(channel) / static_cast<double>(width); }      ///< i / C
  double place(uint64_t channel) const {                                                                          ///< i / (C − 1)
    return width > 1 ? static_cast<double>(channel) / static_cast<double>(width - 1) : 0;
  }
  /// u^exponent with u = i / C, a curve from 0 to nearly 1 over the channels.
  double curve(uint64_t channel, double exponent) const { return std::pow(share(channel), exponent); }
  /// Gain of the group norm behind the recurrence.
  double group_gain() const { return std::pow(static_cast<double>(layer + 1) / static_cast<double>(layers), 0.7); }
};

}  // namespace saccade

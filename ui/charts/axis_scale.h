#pragma once
#include <algorithm>
#include <cmath>

namespace saccade::ui {

/// How one axis turns values into a fraction of the plot area: 0 at the left or bottom edge, 1 at the other.
struct AxisScale {
  double low = 0, high = 1;  ///< values at the ends, low < high; both positive when logarithmic
  bool logarithmic = false, reversed = false;

  bool operator==(const AxisScale&) const = default;
  double shown(double value) const { return logarithmic ? std::log10(value) : value; }  ///< NaN or −inf: cannot be drawn
  double value(double shown_value) const { return logarithmic ? std::pow(10.0, shown_value) : shown_value; }

  double fraction(double v) const {
    const double t = (shown(v) - shown(low)) / (shown(high) - shown(low));
    return reversed ? 1 - t : t;
  }
  double at(double t) const { return value(shown(low) + (reversed ? 1 - t : t) * (shown(high) - shown(low))); }

  /// The part between two fractions, as a scale of its own.
  AxisScale between(double from, double to) const {
    const auto [a, b] = std::minmax({at(from), at(to)});
    return {a, b, logarithmic, reversed};
  }
};

}  // namespace saccade::ui

#pragma once
#include <algorithm>
#include <cmath>

#include "analysis/figures/figure.h"

namespace saccade::ui {

/// How one axis turns values into a fraction of the plot area: 0 at the left or bottom edge, 1 at the other.
struct AxisScale {
  double low = 0, high = 1;  ///< values at the ends, low < high; both positive when logarithmic
  bool logarithmic = false, reversed = false;
  double linear_within = 0;  ///< AxisRecipe::linear_within

  bool operator==(const AxisScale&) const = default;
  /// The scale of a recipe, without its ends.
  static AxisScale of(const AxisRecipe& recipe) { return {0, 1, recipe.logarithmic, recipe.reversed, recipe.linear_within}; }
  bool same_kind(const AxisScale& other) const {
    return logarithmic == other.logarithmic && reversed == other.reversed && linear_within == other.linear_within;
  }

  double shown(double value) const {  ///< NaN or −inf: cannot be drawn
    if (linear_within > 0) return std::copysign(std::log10(1 + std::abs(value) / linear_within), value);
    return logarithmic ? std::log10(value) : value;
  }
  double value(double shown_value) const {
    if (linear_within > 0) return std::copysign(linear_within * (std::pow(10.0, std::abs(shown_value)) - 1), shown_value);
    return logarithmic ? std::pow(10.0, shown_value) : shown_value;
  }

  double fraction(double v) const {
    const double t = (shown(v) - shown(low)) / (shown(high) - shown(low));
    return reversed ? 1 - t : t;
  }
  double at(double t) const { return value(shown(low) + (reversed ? 1 - t : t) * (shown(high) - shown(low))); }

  /// The part between two fractions, as a scale of its own.
  AxisScale between(double from, double to) const {
    const auto [a, b] = std::minmax({at(from), at(to)});
    return {a, b, logarithmic, reversed, linear_within};
  }
};

}  // namespace saccade::ui

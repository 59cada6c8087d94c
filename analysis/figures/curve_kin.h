#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analysis/figures/figure.h"

namespace saccade {

/// Groups of seeds that a chart of one number by another joins, and where they stand in it.
struct Kin {
  std::string label;
  Colour colour;
  Marker marker = Marker::circle;
  struct Point {
    double x, y, deviation;  ///< means over seeds, and the sample standard deviation of y
    size_t seeds;
    const DrawnRuns* group;
  };
  std::vector<Point> points;         ///< a group of seeds each, by x
  std::vector<double> all_x, all_y;  ///< a run each
};

using NumberOf = std::function<double(const Run&)>;

/// Groups of one architecture, but for cooldown branches, which belong to their runs. With `part`: of groups that stand at the same x,
/// which no line can join, the settings in which these differ part the whole architecture; its kin then are those that have the same ones,
/// named by them and in the look of their first group. `setting`, dotted, stands across: it parts nothing. `drawn` must outlive what is
/// returned.
std::vector<Kin> kin_of(const DrawnSet& drawn, const NumberOf& across, const NumberOf& up, const std::string& setting, bool part);

}  // namespace saccade

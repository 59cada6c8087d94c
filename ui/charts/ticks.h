#pragma once
#include <QFontMetricsF>
#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "ui/charts/axis_scale.h"

namespace saccade::ui {

struct Ticks {
  std::vector<double> positions;  ///< labelled, ascending
  std::vector<QString> labels;
  std::vector<double> minor;
};

/// Round positions (1, 2, 5 · 10ⁿ; decades on a long logarithmic axis), at most about `most` of them.
Ticks ticks_for(const AxisScale& scale, int most);
/// Whole numbers only: cells of a map, counted from 0, at their centres.
Ticks cell_ticks(double low, double high, int most);
/// The names of the places 1, 2, … that are seen, or their numbers.
Ticks named_ticks(const AxisScale& scale, const std::vector<std::string>& names, bool numbers);

/// Of names what not all have: "32-pairs-4" and "64-pairs-4" of "mqar-length-32-pairs-4" and "mqar-length-64-pairs-4", whole words between
/// hyphens and spaces, and `common` "mqar-length-…". Of fewer than two, and where nothing is common or one would be left empty, `common` is
/// empty and names are as they were.
struct WhatDiffers {
  std::string common;
  std::vector<std::string> names;
};
WhatDiffers what_differs(const std::vector<std::string>& names);
/// A name in as few lines of at most `room` pixels as it takes, broken behind hyphens and spaces. Empty: three are not enough.
QStringList lines_of_name(const std::string& name, const QFontMetricsF& metrics, double room);

/// A number as an axis or a read-out shows it: four digits, SI suffix from 10 000 on ("2.5 M"), powers of ten when tiny.
QString short_number(double value);
/// With so many decimals, all of them: "−0.5", "3.120"; what rounds to nothing has no sign.
QString fixed_number(double value, int decimals);

}  // namespace saccade::ui

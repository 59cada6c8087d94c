#pragma once
#include <QString>
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

/// A number as an axis or a read-out shows it: four digits, SI suffix from 10 000 on ("2.5 M"), powers of ten when tiny.
QString short_number(double value);
/// With so many decimals, all of them: "−0.5", "3.120"; what rounds to nothing has no sign.
QString fixed_number(double value, int decimals);

}  // namespace saccade::ui

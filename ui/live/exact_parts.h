#pragma once
#include <array>
#include <map>
#include <string>

#include "analysis/figures/line.h"

namespace saccade::ui {

/// All values of thinned series within the part of an axis that is looked at, read again from the journals and kept until another part is.
/// For one thread at a time.
class ExactParts {
 public:
  /// The series with all its values from `part[0]` to `part[1]` on the axis, thinned outside. As it is where it is not thinned, where the
  /// part holds more values than could be seen anyway, or where its journal can no longer be read.
  Line line(const Run& run, const std::string& series, XAxis x, const std::array<double, 2>& part);

 private:
  std::map<std::string, Line> lines_;
  std::array<double, 2> part_{};
};

}  // namespace saccade::ui

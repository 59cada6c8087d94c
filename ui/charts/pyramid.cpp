#include "ui/charts/pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saccade::ui {

namespace {

constexpr MinMaxPyramid::Extent kNothing{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), false};

void add(MinMaxPyramid::Extent& sum, double value) {
  if (std::isnan(value)) {
    sum.gap = true;
  } else {
    sum.low = std::min(sum.low, value);
    sum.high = std::max(sum.high, value);
  }
}
void add(MinMaxPyramid::Extent& sum, const MinMaxPyramid::Extent& part) {
  sum.low = std::min(sum.low, part.low);
  sum.high = std::max(sum.high, part.high);
  sum.gap = sum.gap || part.gap;
}

template <class T>
std::vector<MinMaxPyramid::Extent> blocks(const std::vector<T>& below, size_t fan) {
  std::vector<MinMaxPyramid::Extent> level((below.size() + fan - 1) / fan, kNothing);
  for (size_t i = 0; i < below.size(); ++i) add(level[i / fan], below[i]);
  return level;
}

}  // namespace

MinMaxPyramid::MinMaxPyramid(const std::vector<double>& values) : values_(&values) {
  if (values.size() <= kFan) return;
  levels_.push_back(blocks(values, kFan));
  while (levels_.back().size() > kFan) levels_.push_back(blocks(levels_.back(), kFan));
}

MinMaxPyramid::Extent MinMaxPyramid::extent(size_t begin, size_t end) const {
  Extent sum = kNothing;
  size_t level = 0;  // 0: the values themselves, l: levels_[l − 1]
  const auto take = [&](size_t i) { level == 0 ? add(sum, (*values_)[i]) : add(sum, levels_[level - 1][i]); };
  while (begin < end) {
    if (level == levels_.size() || end - begin < 2 * kFan) {
      for (; begin < end; ++begin) take(begin);
      return sum;
    }
    for (; begin % kFan != 0; ++begin) take(begin);
    for (; end % kFan != 0; --end) take(end - 1);
    begin /= kFan;
    end /= kFan;
    ++level;
  }
  return sum;
}

}  // namespace saccade::ui

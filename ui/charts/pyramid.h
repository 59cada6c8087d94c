#pragma once
#include <cstddef>
#include <vector>

namespace saccade::ui {

/// Least and greatest value of any range of a series in O(log n), so that an envelope can be drawn that hides no point.
/// The values are kept by the caller and must outlive the pyramid unchanged. NaN is skipped and reported.
class MinMaxPyramid {
 public:
  struct Extent {
    double low, high;  ///< +inf, −inf: nothing finite in the range
    bool gap = false;  ///< a NaN stands in the range
    bool empty() const { return !(low <= high); }
  };

  MinMaxPyramid() = default;
  explicit MinMaxPyramid(const std::vector<double>& values);

  /// Of values [begin, end).
  Extent extent(size_t begin, size_t end) const;

 private:
  static constexpr size_t kFan = 16;
  const std::vector<double>* values_ = nullptr;
  std::vector<std::vector<Extent>> levels_;  ///< levels_[0]: blocks of kFan values, levels_[1]: of kFan blocks …
};

}  // namespace saccade::ui

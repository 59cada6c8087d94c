#pragma once
#include <string>

#include "analysis/runs/run.h"

namespace saccade {

/// Keeps a growing series to a number of points: of equally long stretches of steps the points with the least and the greatest value stay
/// (NaN aside), and at the end all points of the stretch that is not full, so that the last value is always there.
class Thinning {
 public:
  Thinning() = default;
  /// `most`: points that stay, about; 0: all do.
  Thinning(size_t most, const std::string& name, const std::string& unit) : most_(most), means_{name + "/mean", unit, {}, {}, {}, {}, {}} {}

  void added(Series& series);  ///< a point was added to the end
  void cut(Series& series);    ///< points were removed from the end

  void shrink() {  ///< gives back room to grow
    for (Column* column : {&means_.step, &means_.tokens, &means_.flops, &means_.seconds, &means_.value}) column->shrink();
  }

  bool thins() const { return stretch_ > 1; }
  const Series& means() const { return means_; }  ///< of every full stretch, at its mean place

 private:
  void halve(Series& series);

  size_t most_ = 0;
  size_t stretch_ = 1;  ///< steps
  size_t done_ = 0;     ///< points of the series that stand for full stretches, two each
  Series means_;
};

}  // namespace saccade

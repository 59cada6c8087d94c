#pragma once
#include <string>
#include <vector>

#include "analysis/training/training_run.h"

namespace saccade {

/// Root mean squares of activations of a model of one width, over frozen text, in the numbers of its parameters.
struct Coordinates {
  int64_t width = 0;
  std::vector<double> layers;     ///< what each layer leaves to the next one
  std::vector<double> changes;    ///< of what training has changed in that
  double logits = 0, change = 0;  ///< of the logits, and of what training has changed in them
};

/// The coordinate check of arXiv:2203.03466, appendix D.1: trains the config at each width for so many steps on its own text and measures a
/// sequence of validation text. Where the parametrisation carries over from width to width no size grows with it. Throws UsageError where
/// the architecture is not made of blocks, and what train_run throws before its first step.
std::vector<Coordinates> check_coordinates(const RunConfig& config, const std::vector<int64_t>& widths, int64_t steps,
                                           const RunProgress& progress = {});

/// The config at another width: the heads stay as many.
RunConfig at_width(const RunConfig& config, int64_t width);

/// Slope of ln y over ln x by least squares: how a size grows with the width. NaN for fewer than two points.
double growth(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace saccade

#pragma once
#include <functional>

#include "tests/support/compare.h"

namespace saccade::test {

/// An op under test: inputs (differentiable unless integer) to outputs.
using Op = std::function<std::vector<Tensor>(Tape&, const std::vector<Tensor>&)>;

/// Compares hand-written gradients with central differences in double, for the loss Σ ⟨output, fixed random⟩ over the
/// floating outputs. Returns an empty string when every input's gradient is within `tolerance` of its largest element.
/// Gradients are also computed a second time on top of themselves to check that contributions are added, not written over.
QString check_gradient(const Op& op, const std::vector<Array>& inputs, double tolerance = 1e-7, double step = 1e-5);

/// Runs op forward and backward in float and in double; empty when outputs and gradients agree within `tolerance`.
QString check_float(const Op& op, const std::vector<Array>& inputs, double tolerance = 2e-5);

}  // namespace saccade::test

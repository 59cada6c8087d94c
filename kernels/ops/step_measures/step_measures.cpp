#include "kernels/ops/step_measures/step_measures.h"

#include <cmath>
#include <limits>

#include "kernels/engine/cuda_basic.h"

namespace saccade {

void add_loss(Tape& tape, const Tensor& sum, const Tensor& loss, double share, bool fresh) {
  tape.run(
      "sum_losses", {},
      [&] {
        dispatch(loss.dtype(), [&](auto zero) {
          double& to = *sum.data<double>();
          to = (fresh ? 0.0 : to) + share * static_cast<double>(*loss.data<decltype(zero)>());
        });
      },
      [&] { cuda::sum_up(tape.stream(), sum, loss, share, fresh); });
}

void require_finite_loss(Tape& tape, const Tensor& norm, const Tensor& loss) {
  tape.run(
      "check_loss", {},
      [&] {
        if (!std::isfinite(*loss.data<double>())) *norm.data<double>() = std::numeric_limits<double>::quiet_NaN();
      },
      [&] { cuda::require_finite(tape.stream(), norm, loss); });
}

}  // namespace saccade

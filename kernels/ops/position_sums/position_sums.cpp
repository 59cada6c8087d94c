#include "kernels/ops/position_sums/position_sums.h"

#include "kernels/engine/expect.h"
#include "kernels/ops/position_sums/position_sums_cuda.h"

namespace saccade {

void add_position_sums(Tape& tape, const Tensor& x, const Tensor& sums) {
  const int64_t length = sums.size();
  expect(sums.dtype() == DType::f64 && x.size() % length == 0, "add_position_sums", "x is ", x, ", sums are ", sums, " ", sums.dtype(),
         "; expected x [S, T], sums f64 [T]");
  tape.run(
      "add_position_sums", {static_cast<double>(x.size()), static_cast<double>(x.bytes() + 2 * sums.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          const auto* values = x.data<decltype(zero)>();
          double* to = sums.data<double>();
          for (int64_t i = 0; i < x.size(); ++i) to[i % length] += static_cast<double>(values[i]);
        });
      },
      [&] { cuda::add_position_sums(tape.stream(), x, sums); });
}

}  // namespace saccade

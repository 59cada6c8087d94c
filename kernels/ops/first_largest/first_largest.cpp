#include "kernels/ops/first_largest/first_largest.h"

#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/first_largest/first_largest_cuda.h"

namespace saccade {

void first_largest(Tape& tape, const Tensor& x, const Tensor& index) {
  expect(x.rank() == 2 && x.dim(1) > 0 && index.dtype() == DType::i32 && index.size() == x.dim(0), "first_largest", "x is ", x,
         ", the index ", index, " ", index.dtype(), "; expected x [N, V], index i32 [N]");
  tape.run(
      "first_largest", {static_cast<double>(x.size()), static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const int64_t width = x.dim(1);
          parallel_for(x.dim(0), [&](int64_t n) {
            const T* row = x.data<T>() + n * width;
            int64_t best = 0;
            for (int64_t i = 1; i < width; ++i)
              if (row[i] > row[best] || (row[best] != row[best] && row[i] == row[i])) best = i;
            index.data<int32_t>()[n] = row[best] == row[best] ? static_cast<int32_t>(best) : 0;
          });
        });
      },
      [&] { cuda::first_largest(tape.stream(), x, index); });
}

}  // namespace saccade

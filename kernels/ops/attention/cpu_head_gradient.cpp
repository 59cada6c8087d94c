#include "kernels/ops/attention/cpu_head_gradient.h"

#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/attention/cpu_dense.h"

namespace saccade {

HeadGradient::HeadGradient(Tape& tape, const char* op, const Tensor& x, const HeadShape& shape, bool repeated)
    : tape_(tape), op_(op), x_(x) {
  if (!x.differentiable()) return;
  if (x.dim(0) != shape.batch || repeated) {
    buffer_ = tape.empty({shape.batch, shape.length, shape.heads, shape.width}, x.dtype());
    target_ = {buffer_, false};
  } else {
    target_ = tape.grad_target(x);
  }
}

void HeadGradient::deliver() {
  if (!buffer_) return;
  if (buffer_.dim(0) == x_.dim(0)) {
    tape_.add_grad(x_, buffer_);
    return;
  }
  const GradTarget sum = tape_.grad_target(x_);
  tape_.run(
      op_, {static_cast<double>(buffer_.size()), static_cast<double>(buffer_.bytes() + sum.tensor.bytes())},
      [&] { dispatch(x_.dtype(), [&](auto zero) { cpu::sum_over_batch<decltype(zero)>(buffer_, sum); }); },
      [&] { cuda::sum_over_batch(tape_.stream(), buffer_, sum.tensor, sum.add); });
}

}  // namespace saccade

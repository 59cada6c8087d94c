#include "kernels/attention/score_backward.h"

#include "kernels/attention/dense.h"

namespace saccade {
namespace {

/// Where dense_backward writes the gradient of x: the tape's own target, or a buffer that `deliver` passes on when x is
/// shared by all sequences or stands for another input too.
class Delivery {
 public:
  Delivery(Tape& tape, const ScoreBackward& in, const Tensor& x, bool repeated) : tape_(tape), op_(in.op), x_(x) {
    if (!x.differentiable()) return;
    const bool shared = x.dim(0) != in.shape.batch;
    if (shared || repeated) {
      buffer_ = tape.empty(in.v.shape(), x.dtype());
      target_ = {buffer_, false};
    } else {
      target_ = tape.grad_target(x);
    }
  }

  const GradTarget& target() const { return target_; }

  void deliver() {
    if (!buffer_) return;
    if (buffer_.dim(0) == x_.dim(0)) {
      tape_.add_grad(x_, buffer_);
      return;
    }
    const GradTarget sum = tape_.grad_target(x_);
    tape_.run(op_, {static_cast<double>(buffer_.size()), static_cast<double>(buffer_.bytes() + sum.tensor.bytes())},
              [&] { dispatch(x_.dtype(), [&](auto zero) { cpu::sum_over_batch<decltype(zero)>(buffer_, sum); }); });
  }

 private:
  Tape& tape_;
  const char* op_;
  Tensor x_, buffer_;
  GradTarget target_;
};

}  // namespace

double pair_flops(const HeadShape& shape, const ScoreOptions& options) {
  return 4.0 * static_cast<double>(shape.sequences() * shape.width) * visible_pairs(shape.length, options.window);
}

void score_backward(Tape& tape, const ScoreBackward& in, const Tensor& d_o) {
  Delivery dq(tape, in, in.q, false), dk(tape, in, in.k, in.k.id() == in.q.id());
  Delivery dv(tape, in, in.values ? in.v : Tensor(), in.v.id() == in.q.id() || in.v.id() == in.k.id());
  const Tensor mean = tape.empty(in.lse.shape(), in.lse.dtype());
  const cpu::DenseBackward dense{in.shape, in.options, in.q, in.k, in.v, d_o, in.lse, mean, dq.target(), dk.target(), dv.target()};
  const int products = 2 + (dense.dq ? 1 : 0) + (dense.dk ? 1 : 0) + (dense.dv ? 1 : 0);
  const double bytes = static_cast<double>(in.q.bytes() + in.k.bytes() + (products + 1) * in.v.bytes() + 2 * in.lse.bytes());
  tape.run(in.op, {0.5 * products * pair_flops(in.shape, in.options), bytes}, [&] {
    dispatch(in.v.dtype(), [&](auto zero) {
      using T = decltype(zero);
      cpu::output_dots<T>(in.shape, d_o, in.soft, mean);
      cpu::dense_backward<T>(dense);
    });
  });
  dq.deliver();
  dk.deliver();
  dv.deliver();
}

}  // namespace saccade

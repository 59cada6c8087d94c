#include "kernels/ops/gated_linear/gated_linear.h"

#include "kernels/engine/expect.h"
#include "kernels/engine/side_stream.h"
#include "kernels/ops/elementwise/elementwise_cuda.h"
#include "kernels/ops/head_projection/fused_linear_cuda.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/linear/linear_stack_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade {
namespace {

Cost products_cost(const Tensor& x, const Tensor& h, const Tensor& gate) {
  return {2.0 * static_cast<double>(x.size()) * static_cast<double>(h.dim(-1)),
          static_cast<double>(x.bytes() + h.bytes() + 2 * gate.size() * byte_size(x.dtype()))};
}

/// `tensors`: how many of y's size are read and written.
Cost gate_cost(const Tensor& y, double flops, int tensors) {
  return {flops * static_cast<double>(y.size()), static_cast<double>(tensors * y.bytes())};
}

void backward(Tape& t, const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& h, const Tensor& dy, Activation f) {
  const int device = t.device().index;
  t.run(
      "gated_linear.backward.gate", gate_cost(dy, flops_of(f) + 5, 5), [] {}, [&] { cuda::gated_packed_backward(t.stream(), f, h, dy); });
  const std::vector<GradTarget> d_weights{t.grad_target(gate), t.grad_target(up)};
  if (d_weights[0] || d_weights[1])
    run_on_side_stream(
        t, "gated_linear.backward.weights", products_cost(x, h, gate), {x, h}, d_weights, [] {},
        [&] {
          cuda::stack_backward_weights(device, x, h, d_weights, {gate, up});
        });
  if (const GradTarget dx = t.grad_target(x))
    t.run(
        "gated_linear.backward.input", products_cost(x, h, gate), [] {},
        [&] {
          cuda::stack_backward_input(device, h, {t.compute_copy(gate), t.compute_copy(up)}, dx);
        });
}

}  // namespace

Tensor gated_linear(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& up, Activation f, const InputNorm& norm) {
  const bool few = few_rows(tape, x);
  if (norm && !few) return gated_linear(tape, norm(tape, x), gate, up, f);
  if (!tape.device().targets_cuda()) {
    const std::vector<Tensor> h = linears(tape, x, {gate, up});
    return gated(tape, h[0], h[1], f);
  }
  expect(gate.rank() == 2 && gate.shape() == up.shape() && x.rank() >= 1 && x.dim(-1) == gate.dim(1) && gate.dtype() == up.dtype() &&
             accumulation_dtype(x.dtype()) == gate.dtype() && gate.id() != up.id(),
         "gated_linear", "x is ", x, " ", x.dtype(), ", gate is ", gate, " ", gate.dtype(), ", up is ", up, " ", up.dtype(),
         "; expected x [..., in], gate and up [out, in]");
  norm.check("gated_linear", x);
  const int64_t out = gate.dim(0), rows = x.size() / x.dim(-1);
  Shape shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.dim(i));
  shape.push_back(out);
  const Tensor u = norm ? tape.empty(x.shape(), x.dtype()) : x, h = tape.empty({rows, 2 * out}, x.dtype());
  Tensor y = tape.empty(shape, x.dtype());
  bool gated = false;  // by the products' own pass
  tape.run(
      "gated_linear", products_cost(x, h, gate), [] {},
      [&] {
        const Tensor w_gate = tape.compute_copy(gate), w_up = tape.compute_copy(up);
        const int device = tape.device().index;
        gated = few && cuda::few_rows_gated(device, f, x, norm, w_gate, w_up, y);
        if (gated) return;
        if (norm) cuda::norm(tape.stream(), x, norm.weight, {}, u, norm.epsilon);
        gated = !tape.recording() && cuda::gated_product(device, f, u, w_gate, w_up, y);
        if (!gated) cuda::stack_forward(device, u, {w_gate, w_up}, h);
      });
  tape.run(
      "gated_linear.gate", gate_cost(y, flops_of(f) + 1, 3), [] {},
      [&] {
        if (!gated) cuda::gated_packed(tape.stream(), f, h, y);
      });
  tape.record({x, gate, up}, {&y}, [=](Tape& t) { backward(t, x, gate, up, h, t.grad(y), f); });
  return y;
}

}  // namespace saccade

#include "kernels/ops/mamba1/mamba1_scan.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/mamba1/cpu_linear_form.h"
#include "kernels/ops/mamba1/cpu_scan.h"
#include "kernels/ops/mamba1/mamba1_linear_cuda.h"
#include "kernels/ops/mamba1/mamba1_scan_cuda.h"

namespace saccade {
namespace {

/// Whether the decay depends on channel and state; otherwise matrix products do.
bool is_scan(const Mamba1Scan& in) { return in.a_log && !in.shared_dt; }

void check(const Mamba1Scan& in) {
  const char* op = "mamba1_scan";
  expect(in.u.rank() == 3 && in.u.shape() == in.dt.shape() && in.u.shape() == in.z.shape(), op, "u is ", in.u, ", dt is ", in.dt, ", z is ",
         in.z, "; expected [B, T, D]");
  const int64_t batch = in.u.dim(0), length = in.u.dim(1), width = in.u.dim(2);
  expect(in.b.rank() == 3 && in.b.dim(0) == batch && in.b.dim(1) == length && in.b.shape() == in.c.shape(), op, "u is ", in.u, ", B is ",
         in.b, ", C is ", in.c, "; expected B, C [B, T, N]");
  expect(in.skip.shape() == Shape{width} && in.dt_bias.shape() == Shape{width}, op, "D is ", in.skip, ", dt_bias is ", in.dt_bias,
         ", u is ", in.u);
  if (in.shared_dt)
    expect(in.shared_dt.size() == batch * length && in.a_log.size() == 1 && in.shared_bias.size() == 1, op, "shared_dt is ", in.shared_dt,
           ", a_log is ", in.a_log, ", shared_bias is ", in.shared_bias);
  else
    expect(!in.a_log || in.a_log.shape() == Shape{width, in.b.dim(2)}, op, "a_log is ", in.a_log, ", u is ", in.u, ", B is ", in.b);
  expect(!in.state.start || in.state.start.shape() == Shape{batch, width, in.b.dim(2)}, op, "state is ", in.state.start, ", u is ", in.u,
         ", B is ", in.b);
}

/// A pass of the scan: exponential, two multiply-adds and the read for every channel and state.
Cost cost(const Mamba1Scan& in, double flops, double tensors) {
  const double elements = static_cast<double>(in.u.size());
  return {flops * elements * static_cast<double>(in.b.dim(2)) + 10 * elements,
          tensors * static_cast<double>(in.u.bytes() + in.b.bytes() + in.c.bytes())};
}

std::vector<Tensor> inputs(const Mamba1Scan& in) {
  return {in.u, in.dt, in.z, in.b, in.c, in.skip, in.dt_bias, in.a_log, in.shared_dt, in.shared_bias, in.state.start};
}

bool wants_start(const Mamba1Scan& in) { return in.state.start && in.state.start.differentiable(); }

Tensor start_gradient(Tape& t, const Mamba1Scan& in) {
  return wants_start(in) ? t.empty(in.state.start.shape(), accumulation_dtype(in.u.dtype())) : Tensor();
}

/// G is a Mamba1Gradients and what a way of going back needs besides.
template <class G>
G gradients(Tape& t, const Mamba1Scan& in, const Tensor& dy, const Tensor& d_end) {
  G out;
  out.dy = dy, out.d_end = d_end;
  out.u = t.grad_target(in.u), out.dt = t.grad_target(in.dt), out.z = t.grad_target(in.z);
  out.b = t.grad_target(in.b), out.c = t.grad_target(in.c);
  out.skip = t.grad_target(in.skip), out.dt_bias = t.grad_target(in.dt_bias), out.a_log = t.grad_target(in.a_log);
  out.shared_dt = t.grad_target(in.shared_dt), out.shared_bias = t.grad_target(in.shared_bias);
  out.d_start = start_gradient(t, in);
  return out;
}

/// On CUDA the scan keeps no states but those at the starts of segments; backward goes through it again first.
void cuda_scan_backward(Tape& t, const Mamba1Scan& in, const Tensor& segment_starts, const Tensor& dy, const Tensor& d_end) {
  auto out = gradients<cuda::ScanBackward>(t, in, dy, d_end);
  out.segment_starts = segment_starts;
  out.segment_ends = cuda::segment_states(t, in);
  out.starts = t.empty(cuda::scan_starts_shape(in), DType::f32);
  out.pair_parts = t.empty(cuda::scan_pair_parts_shape(in), DType::f32);
  out.parts = t.empty(cuda::scan_parts_shape(in), DType::f32);
  t.run(
      "mamba1_scan.backward", cost(in, 24, 7), [] {}, [&] { cuda::selective_scan_backward(t.stream(), in, out); });
  if (out.d_start) t.add_grad(in.state.start, out.d_start);
}

void scan_backward(Tape& t, const Mamba1Scan& in, const Tensor& starts, const Tensor& dy, const Tensor& d_end) {
  const DType dtype = accumulation_dtype(in.u.dtype());
  auto out = gradients<cpu::ScanGradients>(t, in, dy, d_end);
  out.pair_parts = t.empty(cpu::scan_pair_parts_shape(in), dtype);
  out.parts = t.empty({in.u.dim(0), in.u.dim(2), in.b.dim(2) + 2}, dtype);
  t.run("mamba1_scan.backward", cost(in, 24, 7),
        [&] { dispatch(in.u.dtype(), [&](auto zero) { cpu::selective_scan_backward<decltype(zero)>(in, starts, out); }); });
  if (out.d_start) t.add_grad(in.state.start, out.d_start);
}

cpu::LinearForm make_workspace(Tape& t, const Mamba1Scan& in) {
  const DType dtype = accumulation_dtype(in.u.dtype());
  cpu::LinearForm form{t.empty(in.u.shape(), dtype), t.empty(in.u.shape(), dtype), {}, {}};
  if (in.shared_dt) form.g = t.empty({in.u.dim(0), in.u.dim(1), 1}, dtype);
  if (in.state.start) form.start = t.empty({in.u.dim(0), 1, in.b.dim(2), in.u.dim(2)}, dtype);
  return form;
}

/// The chunk form as far as its costs are concerned.
cpu::ScalarDecay sizes(const Mamba1Scan& in) {
  const Shape keys{in.b.dim(0), in.b.dim(1), 1, in.b.dim(2)};
  return {in.c.reshape(keys), in.b.reshape(keys), in.u.reshape({in.u.dim(0), in.u.dim(1), 1, in.u.dim(2)}), {}, {}};
}

void linear_backward(Tape& t, const Mamba1Scan& in, const Tensor& o, const Tensor& dy, const Tensor& d_end) {
  const DType dtype = accumulation_dtype(in.u.dtype());
  const cpu::LinearForm form = make_workspace(t, in);
  const cpu::ScalarDecay chunks = cpu::chunk_form(in, form);
  const Shape state{in.u.dim(0), 1, in.b.dim(2), in.u.dim(2)};
  auto out = gradients<cpu::LinearGradients>(t, in, dy, d_end);
  out.o = o;
  out.states = t.empty(chunks.states_shape(), dtype);
  out.d_states = t.empty(chunks.states_shape(), dtype);
  out.gated = t.empty(in.u.shape(), dtype);
  out.dv = t.empty(in.u.shape(), dtype);
  out.dg = form.g ? t.empty(form.g.shape(), dtype) : Tensor();
  out.chunk_end = d_end ? t.empty(state, dtype) : Tensor();
  out.chunk_start = wants_start(in) ? t.empty(state, dtype) : Tensor();
  out.parts = t.empty({(in.u.dim(0) * in.u.dim(1) + cpu::kLinearRows - 1) / cpu::kLinearRows, 2 * in.u.dim(2) + 2}, dtype);
  const Cost pass = cost(in, 0, 8);
  t.run("mamba1_linear.backward", {3.5 * chunks.flops() + 3 * pass.flops, pass.bytes}, [&] {
    dispatch(in.u.dtype(), [&](auto zero) {
      using T = decltype(zero);
      cpu::prepare<T>(in, form);
      cpu::linear_scan_backward<T>(in, form, out);
    });
  });
  if (out.d_start) t.add_grad(in.state.start, out.d_start);
}

Tensor end_of(Tape& tape, const Mamba1Scan& in, Mamba1Output& out) {
  if (in.state.want_end) out.end = tape.empty({in.u.dim(0), in.u.dim(2), in.b.dim(2)}, accumulation_dtype(in.u.dtype()));
  return in.state.in_place ? in.state.start : out.end;
}

std::vector<Tensor*> outputs(Mamba1Output& out) { return out.end ? std::vector<Tensor*>{&out.y, &out.end} : std::vector<Tensor*>{&out.y}; }

/// Runs the scan; the states from which backward goes on.
Tensor cpu_scan(Tape& tape, const Mamba1Scan& in, const Tensor& y, const Tensor& end) {
  const Tensor starts = tape.empty(cpu::scan_starts_shape(in), accumulation_dtype(in.u.dtype()));
  tape.run("mamba1_scan", cost(in, 8, 4),
           [&] { dispatch(in.u.dtype(), [&](auto zero) { cpu::selective_scan<decltype(zero)>(in, y, starts, end); }); });
  return starts;
}
Tensor cuda_scan(Tape& tape, const Mamba1Scan& in, const Tensor& y, const Tensor& end) {
  if (const int64_t states = in.b.dim(2); states > cuda::kMaxScanStates)
    tape.refuse("mamba1_scan", std::to_string(states) + " states, a GPU takes at most " + std::to_string(cuda::kMaxScanStates));
  const cuda::SegmentStates segments = cuda::segment_states(tape, in);
  tape.run(
      "mamba1_scan", cost(in, 8, 4), [] {}, [&] { cuda::selective_scan(tape.stream(), in, segments, y, end); });
  return segments.states;
}

Mamba1Output scan(Tape& tape, const Mamba1Scan& in) {
  Mamba1Output out{tape.empty(in.u.shape(), in.u.dtype()), {}};
  const Tensor end = end_of(tape, in, out), starts = (tape.device().targets_cuda() ? cuda_scan : cpu_scan)(tape, in, out.y, end);
  tape.record(inputs(in), outputs(out), [in, starts, y = out.y, end_state = out.end](Tape& t) {
    (t.device().targets_cuda() ? cuda_scan_backward : scan_backward)(t, in, starts, t.grad_or_zeros(y),
                                                                     end_state ? t.grad(end_state) : Tensor());
  });
  return out;
}

void cuda_linear_backward(Tape& t, const Mamba1Scan& in, const Tensor& o, const Tensor& dy, const Tensor& d_end) {
  const cuda::Mamba1Workspace workspace = cuda::mamba1_workspace(t, in, false, true);
  const int64_t batch = in.u.dim(0), length = in.u.dim(1), heads = workspace.form.x.dim(2);
  const Shape state{batch, heads, in.b.dim(2), workspace.form.x.dim(3)};
  auto out = gradients<cuda::Mamba1LinearGradients>(t, in, dy, d_end);
  out.o = o;
  out.gated = t.empty(in.u.shape(), in.u.dtype());
  out.dv = t.empty(in.u.shape(), in.u.dtype());
  out.lines = t.empty({2, batch, heads, length}, DType::f32);
  out.dg = in.shared_dt ? t.empty({batch, heads, length}, DType::f32) : Tensor();
  out.parts = t.empty({2, run_parts(batch * length), in.u.dim(2)}, DType::f32);
  out.shared_parts = in.shared_dt ? t.empty({2, batch}, DType::f32) : Tensor();
  out.chunk_end = d_end ? t.empty(state, DType::f32) : Tensor();
  out.chunk_start = wants_start(in) ? t.empty(state, DType::f32) : Tensor();
  const Cost pass = cost(in, 0, 8);
  t.run(
      "mamba1_linear.backward", {3.5 * sizes(in).flops() + 3 * pass.flops, pass.bytes}, [] {},
      [&] { cuda::mamba1_linear_backward(t.stream(), in, workspace, out); });
  if (out.d_start) t.add_grad(in.state.start, out.d_start);
}

void cpu_linear(Tape& tape, const Mamba1Scan& in, const Tensor& o, const Tensor& y, const Tensor& end) {
  const cpu::LinearForm form = make_workspace(tape, in);
  const cpu::ScalarDecay chunks = cpu::chunk_form(in, form);
  const Tensor states = tape.empty(chunks.states_shape(), o.dtype());
  const Cost pass = cost(in, 0, 4);
  tape.run("mamba1_linear", {chunks.flops() + pass.flops, pass.bytes}, [&] {
    dispatch(in.u.dtype(), [&](auto zero) {
      using T = decltype(zero);
      cpu::prepare<T>(in, form);
      cpu::linear_scan<T>(in, form, states, o, y, end);
    });
  });
}

void cuda_linear(Tape& tape, const Mamba1Scan& in, const Tensor& o, const Tensor& y, const Tensor& end) {
  const cuda::Mamba1Workspace workspace = cuda::mamba1_workspace(tape, in, static_cast<bool>(end), false);
  const Cost pass = cost(in, 0, 4);
  tape.run(
      "mamba1_linear", {sizes(in).flops() + pass.flops, pass.bytes}, [] {},
      [&] { cuda::mamba1_linear(tape.stream(), in, workspace, o, y, end); });
}

Mamba1Output linear(Tape& tape, const Mamba1Scan& in) {
  const bool on_gpu = tape.device().targets_cuda();
  Mamba1Output out{tape.empty(in.u.shape(), in.u.dtype()), {}};
  const Tensor end = end_of(tape, in, out);
  const Tensor o = tape.empty(in.u.shape(), on_gpu ? in.u.dtype() : accumulation_dtype(in.u.dtype()));
  (on_gpu ? cuda_linear : cpu_linear)(tape, in, o, out.y, end);
  tape.record(inputs(in), outputs(out), [in, o, y = out.y, end_state = out.end](Tape& t) {
    (t.device().targets_cuda() ? cuda_linear_backward : linear_backward)(t, in, o, t.grad_or_zeros(y),
                                                                         end_state ? t.grad(end_state) : Tensor());
  });
  return out;
}

}  // namespace

Mamba1Output mamba1_scan(Tape& tape, const Mamba1Scan& in) {
  check(in);
  return is_scan(in) ? scan(tape, in) : linear(tape, in);
}

namespace {

/// Δ [T] and the decays e^{ΔA} [T, N] of one channel.
template <class T>
struct Channel {
  std::vector<T> step, decay;
  Channel(const Mamba1Scan& in, int64_t sequence, int64_t d) {
    const int64_t length = in.u.dim(1), width = in.u.dim(2), states = in.b.dim(2);
    for (int64_t t = 0; t < length; ++t) {
      step.push_back(softplus(in.dt.data<T>()[(sequence * length + t) * width + d] + in.dt_bias.data<T>()[d]));
      T shared = 1;
      if (in.shared_dt)
        shared = std::exp(-std::exp(in.a_log.data<T>()[0]) *
                          softplus(in.shared_dt.data<T>()[sequence * length + t] + in.shared_bias.data<T>()[0]));
      for (int64_t n = 0; n < states; ++n)
        decay.push_back(is_scan(in) ? std::exp(-std::exp(in.a_log.data<T>()[d * states + n]) * step.back()) : shared);
    }
  }
};

/// One row: C_t is carried back through the decays.
template <class T>
void weights_of_query(const Mamba1Scan& in, int64_t sequence, int64_t d, const Channel<T>& channel, int64_t t, T* row) {
  const int64_t length = in.u.dim(1), states = in.b.dim(2);
  const T *b = in.b.data<T>() + sequence * length * states, *c = in.c.data<T>() + (sequence * length + t) * states;
  std::vector<T> w(c, c + states);
  for (int64_t j = t; j >= 0; --j) {
    T sum = 0;
    for (int64_t n = 0; n < states; ++n) sum += w[static_cast<size_t>(n)] * b[j * states + n];
    row[j] = channel.step[static_cast<size_t>(j)] * sum;
    for (int64_t n = 0; n < states; ++n) w[static_cast<size_t>(n)] *= channel.decay[static_cast<size_t>(j * states + n)];
  }
  row[t] += in.skip.data<T>()[d];
  std::fill(row + t + 1, row + length, T(0));
}

}  // namespace

Tensor mamba1_weights(Tape& tape, const Mamba1Scan& in, const Sequences& sequences, const std::vector<int64_t>& channels) {
  check(in);
  const int64_t length = in.u.dim(1), count = static_cast<int64_t>(channels.size()), maps = sequences.count * count;
  const Tensor weights = tape.empty({maps, length, length}, accumulation_dtype(in.u.dtype()));
  const double steps = static_cast<double>(maps * length * (length + 1)) / 2;
  tape.run(
      "mamba1_weights", {steps * static_cast<double>(3 * in.b.dim(2)), static_cast<double>(weights.bytes())},
      [&] {
        dispatch(in.u.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t map = 0; map < maps; ++map) {
            const int64_t b = sequences.first + map / count, d = channels[static_cast<size_t>(map % count)];
            const Channel<T> channel(in, b, d);
            parallel_for(length,
                         [&](int64_t t) { weights_of_query(in, b, d, channel, t, weights.data<T>() + (map * length + t) * length); });
          }
        });
      },
      [&] { cuda::mamba1_weights(tape.stream(), in, sequences, channels, weights); });
  return weights;
}

}  // namespace saccade

#include "kernels/ops/mamba1/cpu_scan.h"

#include <algorithm>

#include "kernels/cpu/lanes.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/mamba1/cpu_rows.h"

namespace saccade::cpu {
namespace {

/// Some channels of one sequence. Channels are padded to whole vectors in the scratch; padding stays zero.
template <class T>
struct Channels {
  int64_t length, width, states;  ///< T, D, N
  int64_t first, count;           ///< channels of this task
  const T *u, *dt, *z, *b, *c;    ///< of token 0 and channel 0
  const T *skip, *bias, *a_log;
  T *y, *starts;  ///< starts of chunk 0, [chunks, N, D]

  int64_t vectors() const { return (count + kLanes<T> - 1) / kLanes<T>; }
  int64_t row() const { return vectors() * kLanes<T>; }
  int64_t chunks() const { return (length + kScanChunk - 1) / kScanChunk; }
};

/// Scratch of one task: rows of `row()` channels, aligned like vectors.
template <class T>
struct Workspace {
  T *a, *h;                  ///< A and the state, [N, row]
  T *step, *input, *y;       ///< Δ, Δ u and Σ_n C h of a chunk, [chunk, row]
  T *dy, *d_input, *d_step;  ///< backward: dỹ, Σ_n E B and Σ_n A κ
  T *e, *da;                 ///< backward: E and dA, [N, row]
  explicit Workspace(const Channels<T>& x) {
    const int64_t states = x.states * x.row(), chunk = kScanChunk * x.row();
    T* at = scratch<T, 24>(4 * states + 6 * chunk);
    for (T** p : {&a, &h, &e, &da}) *p = at, at += states;
    for (T** p : {&step, &input, &y, &dy, &d_input, &d_step}) *p = at, at += chunk;
  }
};

/// A, padded.
template <class T>
SACCADE_INLINE void load_decays(const Channels<T>& x, const Workspace<T>& workspace) {
  std::fill(workspace.a, workspace.a + x.states * x.row(), T(0));
  for (int64_t d = 0; d < x.count; ++d)
    for (int64_t n = 0; n < x.states; ++n) workspace.a[n * x.row() + d] = -fast_exp(x.a_log[(x.first + d) * x.states + n]);
}

/// Δ and Δ u of a chunk, padded.
template <class T>
SACCADE_INLINE void load_chunk(const Channels<T>& x, int64_t at, int64_t size, const Workspace<T>& workspace) {
  for (int64_t t = 0; t < size; ++t) {
    T *step = workspace.step + t * x.row(), *input = workspace.input + t * x.row();
    step_row(x.dt + (at + t) * x.width + x.first, x.bias + x.first, x.u + (at + t) * x.width + x.first, x.count, step, input);
    for (int64_t d = x.count; d < x.row(); ++d) step[d] = input[d] = 0;
  }
}

/// One state of one vector of channels through a chunk. `decays` and `states` (null: not kept) get e^{ΔA} and h of every token.
template <class T>
SACCADE_INLINE void scan_state(const Channels<T>& x, int64_t at, int64_t size, int64_t n, int64_t column, const Workspace<T>& workspace,
                               bool zero_y, Lanes<T>* decays, Lanes<T>* states) {
  const int64_t row = x.row();
  Lanes<T> a, h;
  load(workspace.a + n * row + column, a);
  load(workspace.h + n * row + column, h);
  for (int64_t t = 0; t < size; ++t) {
    Lanes<T> e, input, y;
    load(workspace.step + t * row + column, e);
    load(workspace.input + t * row + column, input);
    e *= a;
    exponential(e);
    h = e * h + input * x.b[(at + t) * x.states + n];
    if (zero_y)
      y = h * x.c[(at + t) * x.states + n];
    else
      load(workspace.y + t * row + column, y), y += h * x.c[(at + t) * x.states + n];
    std::memcpy(workspace.y + t * row + column, &y, sizeof(y));
    if (decays) decays[t] = e, states[t] = h;
  }
  std::memcpy(workspace.h + n * row + column, &h, sizeof(h));
}

template <class T>
SACCADE_INLINE void save_start(const Channels<T>& x, int64_t chunk, const Workspace<T>& workspace) {
  for (int64_t n = 0; n < x.states; ++n)
    for (int64_t d = 0; d < x.count; ++d) x.starts[(chunk * x.states + n) * x.width + x.first + d] = workspace.h[n * x.row() + d];
}

template <class T>
SACCADE_INLINE void forward_channels(const Channels<T>& x, const Workspace<T>& workspace) {
  load_decays(x, workspace);
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t at = chunk * kScanChunk, size = std::min(kScanChunk, x.length - at);
    save_start(x, chunk, workspace);
    load_chunk(x, at, size, workspace);
    for (int64_t column = 0; column < x.row(); column += kLanes<T>)
      for (int64_t n = 0; n < x.states; ++n) scan_state<T>(x, at, size, n, column, workspace, n == 0, nullptr, nullptr);
    for (int64_t t = 0; t < size; ++t) {
      const int64_t here = (at + t) * x.width + x.first;
      gate_row(workspace.y + t * x.row(), x.skip + x.first, x.u + here, x.z + here, x.count, x.y + here);
    }
  }
}

/// Where the gradients of one task go; null: not wanted. Addresses are of token 0 and channel 0.
template <class T>
struct ChannelGradients {
  const T* dy;
  T *du, *d_raw, *dz;
  bool add_u, add_raw, add_z;
  T* pairs;            ///< [T, 2 N] sums over this task's channels: dB, dC
  T *d_bias, *d_skip;  ///< of this task's channels
};

/// One state of all of a task's channels through a chunk, forward and back. With E the gradient of h_t:
///   E += C dỹ,  dC = Σ_d dỹ h,  dB = Σ_d E Δu,  κ = e^{ΔA} E h_{t−1},  dA += Δ κ,  E ← e^{ΔA} E
template <class T>
SACCADE_INLINE void state_gradients(const Channels<T>& x, int64_t at, int64_t size, int64_t n, const Workspace<T>& workspace,
                                    const ChannelGradients<T>& out) {
  const int64_t row = x.row(), N = x.states;
  Lanes<T> decays[kScanChunk], states[kScanChunk], sum_b[kScanChunk], sum_c[kScanChunk];
  for (int64_t t = 0; t < size; ++t) sum_b[t] = Lanes<T>{}, sum_c[t] = Lanes<T>{};
  for (int64_t column = 0; column < row; column += kLanes<T>) {
    Lanes<T> start, a, e, da;
    load(workspace.h + n * row + column, start);
    scan_state<T>(x, at, size, n, column, workspace, n == 0, decays, states);
    load(workspace.a + n * row + column, a);
    load(workspace.e + n * row + column, e);
    load(workspace.da + n * row + column, da);
    for (int64_t t = size; t-- > 0;) {
      const int64_t here = t * row + column;
      Lanes<T> dy, input, step, d_input, d_step;
      load(workspace.dy + here, dy);
      load(workspace.input + here, input);
      load(workspace.step + here, step);
      load(workspace.d_input + here, d_input);
      load(workspace.d_step + here, d_step);
      e += dy * x.c[(at + t) * N + n];
      sum_c[t] += dy * states[t];
      sum_b[t] += e * input;
      d_input += e * x.b[(at + t) * N + n];
      e *= decays[t];
      const Lanes<T> kappa = e * (t > 0 ? states[t - 1] : start);
      d_step += a * kappa;
      da += step * kappa;
      std::memcpy(workspace.d_input + here, &d_input, sizeof(d_input));
      std::memcpy(workspace.d_step + here, &d_step, sizeof(d_step));
    }
    std::memcpy(workspace.e + n * row + column, &e, sizeof(e));
    std::memcpy(workspace.da + n * row + column, &da, sizeof(da));
  }
  for (int64_t t = 0; t < size; ++t) {
    out.pairs[(at + t) * 2 * N + n] = sum_lanes<T>(sum_b[t]);
    out.pairs[(at + t) * 2 * N + N + n] = sum_lanes<T>(sum_c[t]);
  }
}

/// du = D dỹ + Δ Σ_n E B,  dΔ = u Σ_n E B + Σ_n A κ,  dz = dy ỹ silu'(z) of one token
template <class T>
SACCADE_INLINE void token_gradients(const Channels<T>& x, int64_t t, int64_t in_chunk, const Workspace<T>& workspace,
                                    const ChannelGradients<T>& out) {
  const int64_t at = t * x.width + x.first, row = in_chunk * x.row(), n = x.count;
  const T *u = x.u + at, *skip = x.skip + x.first, *gated = workspace.dy + row, *d_input = workspace.d_input + row;
  T made[kScanChannels];
  input_slope_row(skip, gated, workspace.step + row, d_input, n, made);
  put_row(made, n, out.add_u, out.du ? out.du + at : nullptr);
  gate_slope_row(out.dy + at, workspace.y + row, skip, u, x.z + at, n, made);
  put_row(made, n, out.add_z, out.dz ? out.dz + at : nullptr);
  step_slope_row(u, d_input, workspace.d_step + row, x.dt + at, x.bias + x.first, n, made);
  put_row(made, n, out.add_raw, out.d_raw ? out.d_raw + at : nullptr);
  put_row(made, n, true, out.d_bias);
  add_products(gated, u, n, out.d_skip);
}

template <class T>
SACCADE_INLINE void backward_channels(const Channels<T>& x, const Workspace<T>& workspace, const ChannelGradients<T>& out) {
  load_decays(x, workspace);
  std::fill(workspace.da, workspace.da + x.states * x.row(), T(0));
  for (int64_t chunk = x.chunks(); chunk-- > 0;) {
    const int64_t at = chunk * kScanChunk, size = std::min(kScanChunk, x.length - at);
    load_chunk(x, at, size, workspace);
    for (int64_t n = 0; n < x.states; ++n)
      for (int64_t d = 0; d < x.row(); ++d)
        workspace.h[n * x.row() + d] = d < x.count ? x.starts[(chunk * x.states + n) * x.width + x.first + d] : T(0);
    for (int64_t t = 0; t < size; ++t) {
      T* gated = workspace.dy + t * x.row();
      gated_row(out.dy + (at + t) * x.width + x.first, x.z + (at + t) * x.width + x.first, x.count, gated);
      for (int64_t d = x.count; d < x.row(); ++d) gated[d] = 0;
    }
    std::fill(workspace.d_input, workspace.d_input + size * x.row(), T(0));
    std::fill(workspace.d_step, workspace.d_step + size * x.row(), T(0));
    for (int64_t n = 0; n < x.states; ++n) state_gradients(x, at, size, n, workspace, out);
    for (int64_t t = 0; t < size; ++t) token_gradients(x, at + t, t, workspace, out);
  }
}

#define ENTRY_POINTS(T)                                                                                              \
  SACCADE_SIMD void forward(const Channels<T>& x, const Workspace<T>& workspace) { forward_channels(x, workspace); } \
  SACCADE_SIMD void backward(const Channels<T>& x, const Workspace<T>& workspace, const ChannelGradients<T>& out) {  \
    backward_channels(x, workspace, out);                                                                            \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

int64_t tasks_a_sequence(const Mamba1Scan& in) { return (in.u.dim(2) + kScanChannels - 1) / kScanChannels; }

template <class T>
Channels<T> channels_of(const Mamba1Scan& in, int64_t b, int64_t task, const Tensor& y, const Tensor& starts) {
  const int64_t length = in.u.dim(1), width = in.u.dim(2), states = in.b.dim(2), first = task * kScanChannels;
  const auto tokens = [&](const Tensor& x) { return x.data<T>() + b * length * x.dim(2); };
  Channels<T> x{};
  x.length = length, x.width = width, x.states = states;
  x.first = first, x.count = std::min(kScanChannels, width - first);
  x.u = tokens(in.u), x.dt = tokens(in.dt), x.z = tokens(in.z), x.b = tokens(in.b), x.c = tokens(in.c);
  x.skip = in.skip.data<T>(), x.bias = in.dt_bias.data<T>(), x.a_log = in.a_log.data<T>();
  if (y) x.y = tokens(y);
  x.starts = starts.data<T>() + b * x.chunks() * states * width;
  return x;
}

/// Rows [N, row] of the scratch from or to [B, D, N].
template <class T>
void load_state(const Channels<T>& x, const Tensor& from, int64_t b, T* rows) {
  std::fill_n(rows, x.states * x.row(), T(0));
  if (!from) return;
  for (int64_t d = 0; d < x.count; ++d)
    for (int64_t n = 0; n < x.states; ++n) rows[n * x.row() + d] = from.data<T>()[(b * x.width + x.first + d) * x.states + n];
}
template <class T>
void store_state(const Channels<T>& x, const T* rows, int64_t b, const Tensor& to) {
  for (int64_t d = 0; d < x.count; ++d)
    for (int64_t n = 0; n < x.states; ++n) to.data<T>()[(b * x.width + x.first + d) * x.states + n] = rows[n * x.row() + d];
}

/// dB and dC: Σ over the tasks' parts, in order.
template <class T>
void sum_pairs(const Mamba1Scan& in, const ScanGradients& out) {
  const int64_t rows = in.u.dim(0) * in.u.dim(1), n = in.b.dim(2);
  parallel_ranges(rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * 2 * n; i < end * 2 * n; ++i) {
      const int64_t row = i / (2 * n), column = i % (2 * n);
      const GradTarget& target = column < n ? out.b : out.c;
      if (!target) continue;
      T& to = target.tensor.data<T>()[row * n + column % n];
      T sum = target.add ? to : T(0);
      for (int64_t task = 0; task < out.pair_parts.dim(0); ++task) sum += out.pair_parts.data<T>()[task * rows * 2 * n + i];
      to = sum;
    }
  });
}

/// Parameters' gradients: Σ over sequences of parts [B, D, N + 2], in order; dA_log = dA ∘ A.
template <class T>
void sum_parameters(const Mamba1Scan& in, const ScanGradients& out) {
  const int64_t batch = in.u.dim(0), width = in.u.dim(2), n = in.b.dim(2), row = n + 2;
  const auto put = [&](const GradTarget& target, int64_t at, int64_t part, T factor) {
    if (!target) return;
    T& to = target.tensor.data<T>()[at];
    T sum = 0;
    for (int64_t b = 0; b < batch; ++b) sum += out.parts.data<T>()[b * width * row + part];
    to = (target.add ? to : T(0)) + factor * sum;
  };
  for (int64_t d = 0; d < width; ++d) {
    for (int64_t i = 0; i < n; ++i) put(out.a_log, d * n + i, d * row + i, -std::exp(in.a_log.data<T>()[d * n + i]));
    put(out.dt_bias, d, d * row + n, T(1));
    put(out.skip, d, d * row + n + 1, T(1));
  }
}

}  // namespace

Shape scan_starts_shape(const Mamba1Scan& in) {
  return {in.u.dim(0), (in.u.dim(1) + kScanChunk - 1) / kScanChunk, in.b.dim(2), in.u.dim(2)};
}

Shape scan_pair_parts_shape(const Mamba1Scan& in) { return {tasks_a_sequence(in), in.u.dim(0), in.u.dim(1), 2 * in.b.dim(2)}; }

template <class T>
void selective_scan(const Mamba1Scan& in, const Tensor& y, const Tensor& starts, const Tensor& end) {
  const int64_t tasks = tasks_a_sequence(in);
  parallel_for(in.u.dim(0) * tasks, [&](int64_t task) {
    const int64_t b = task / tasks;
    const Channels<T> x = channels_of<T>(in, b, task % tasks, y, starts);
    const Workspace<T> workspace(x);
    load_state(x, in.state.start, b, workspace.h);
    forward(x, workspace);
    if (end) store_state(x, workspace.h, b, end);
  });
}

template <class T>
void selective_scan_backward(const Mamba1Scan& in, const Tensor& starts, const ScanGradients& out) {
  const int64_t tasks = tasks_a_sequence(in), length = in.u.dim(1), width = in.u.dim(2), n = in.b.dim(2);
  parallel_for(in.u.dim(0) * tasks, [&](int64_t task) {
    const int64_t b = task / tasks;
    const Channels<T> x = channels_of<T>(in, b, task % tasks, {}, starts);
    const Workspace<T> workspace(x);
    load_state(x, out.d_end, b, workspace.e);
    const auto at = [&](const GradTarget& target) { return target ? target.tensor.data<T>() + b * length * width : nullptr; };
    T sums[2 * kScanChannels] = {};
    const ChannelGradients<T> to{out.dy.data<T>() + b * length * width,
                                 at(out.u),
                                 at(out.dt),
                                 at(out.z),
                                 out.u.add,
                                 out.dt.add,
                                 out.z.add,
                                 out.pair_parts.data<T>() + (task % tasks * in.u.dim(0) + b) * length * 2 * n,
                                 sums,
                                 sums + kScanChannels};
    backward(x, workspace, to);
    for (int64_t d = 0; d < x.count; ++d) {
      T* part = out.parts.data<T>() + (b * width + x.first + d) * (n + 2);
      for (int64_t i = 0; i < n; ++i) part[i] = workspace.da[i * x.row() + d];
      part[n] = to.d_bias[d], part[n + 1] = to.d_skip[d];
    }
    if (out.d_start) store_state(x, workspace.e, b, out.d_start);
  });
  sum_pairs<T>(in, out);
  sum_parameters<T>(in, out);
}

#define INSTANTIATE(T)                                                                             \
  template void selective_scan<T>(const Mamba1Scan&, const Tensor&, const Tensor&, const Tensor&); \
  template void selective_scan_backward<T>(const Mamba1Scan&, const Tensor&, const ScanGradients&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace saccade::cpu

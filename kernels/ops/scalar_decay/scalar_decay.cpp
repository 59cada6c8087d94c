#include "kernels/ops/scalar_decay/scalar_decay.h"

#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/scalar_decay/chunk_decay.h"

namespace saccade::cpu {

namespace {

/// Sizes and addresses. Heads of a group that decay alike count as one head of their joint width.
template <class T>
struct Layout {
  int64_t batch, length, groups, keys, row_v;  ///< row_v: H P
  int64_t heads, width;                        ///< a group's heads with a decay of their own, and their width
  int64_t decays;                              ///< columns of g, 0 without
  int64_t chunk, chunks;
  const T *q, *k, *v, *g;

  explicit Layout(const ScalarDecay& in)
      : batch(in.q.dim(0)),
        length(in.q.dim(1)),
        groups(in.q.dim(2)),
        keys(in.q.dim(3)),
        row_v(in.v.dim(2) * in.v.dim(3)),
        decays(in.g ? in.g.dim(2) : 0),
        chunk(std::min(ScalarDecay::kChunk, length)),
        chunks((length + chunk - 1) / chunk),
        q(in.q.data<T>()),
        k(in.k.data<T>()),
        v(in.v.data<T>()),
        g(in.g ? in.g.data<T>() : nullptr) {
    const bool alike = decays <= 1;
    heads = alike ? 1 : in.v.dim(2) / groups;
    width = group_width() / heads;
  }
  int64_t row_k() const { return groups * keys; }
  int64_t group_width() const { return row_v / groups; }
  int64_t state_size() const { return groups * keys * group_width(); }
  T* state(const Tensor& states, int64_t b, int64_t c, int64_t group) const {
    return states.data<T>() + ((b * (chunks + 1) + c) * groups + group) * keys * group_width();
  }
};

/// One chunk of one sequence as one group of heads sees it.
template <class T>
struct GroupChunk {
  const Layout<T>& x;
  int64_t b, c, group, first, size;
  const T *q, *k, *v;

  GroupChunk(const Layout<T>& layout, int64_t sequence, int64_t index, int64_t group_index)
      : x(layout),
        b(sequence),
        c(index),
        group(group_index),
        first(b * x.length + c * x.chunk),
        size(std::min(x.chunk, x.length - c * x.chunk)),
        q(x.q + first * x.row_k() + group * x.keys),
        k(x.k + first * x.row_k() + group * x.keys),
        v(x.v + first * x.row_v + group * x.group_width()) {}

  bool first_of_zeros(const ScalarDecay& in) const { return c == 0 && !in.start; }
  /// Running sum of log decays of head h; null without decay.
  const T* running(int64_t h, T* out) const {
    if (x.decays == 0) return nullptr;
    const T* g = x.g + first * x.decays + (x.decays > 1 ? group * x.heads + h : 0);
    T sum = 0;
    for (int64_t i = 0; i < size; ++i) out[i] = sum += g[i * x.decays];
    return out;
  }
  int64_t column(int64_t h) const { return group * x.group_width() + h * x.width; }
};

template <class T, class Body>
void for_parts(const Layout<T>& x, Body body) {
  parallel_for(x.batch * x.chunks * x.groups, [&](int64_t task) {
    const int64_t group = task % x.groups, c = task / x.groups % x.chunks, b = task / x.groups / x.chunks;
    body(GroupChunk<T>(x, b, c, group));
  });
}

/// states[c + 1] = (k ∘ tail)ᵀ v of chunk c.
template <class T>
void local_states(const Layout<T>& x, const Tensor& states) {
  for_parts(x, [&](const GroupChunk<T>& p) {
    const int64_t width = x.group_width();
    T *tailed = scratch<T, 22>(x.chunk * width + x.chunk), *sums = tailed + x.chunk * width;
    for (int64_t h = 0; h < x.heads; ++h)
      scale_by_tail(p.running(h, sums), p.size, p.v + h * x.width, x.row_v, x.width, tailed + h * x.width, width);
    gemm_serial<T>(true, false, x.keys, width, p.size, 1, p.k, x.row_k(), tailed, width, false, x.state(states, p.b, p.c + 1, p.group),
                   width);
  });
}

/// Total decay of chunk c of sequence b for every head: e^{G_L}.
template <class T>
T total_decay(const GroupChunk<T>& p, int64_t h, T* sums) {
  const T* running = p.running(h, sums);
  return running ? std::exp(running[p.size - 1]) : T(1);
}

/// states[c + 1] += last ∘ states[c], in order; from zeros or the given start.
template <class T>
void chain_states(const ScalarDecay& in, const Layout<T>& x, const Tensor& states) {
  parallel_for(x.batch * x.groups, [&](int64_t task) {
    const int64_t b = task / x.groups, group = task % x.groups, width = x.group_width(), p = in.v.dim(3);
    T *sums = scratch<T, 22>(x.chunk), *to = x.state(states, b, 0, group);
    if (in.start) {
      const T* from = in.start.data<T>() + b * x.state_size() + group * x.keys * width;
      for (int64_t n = 0; n < x.keys; ++n)
        for (int64_t r = 0; r < width / p; ++r) std::copy_n(from + (r * x.keys + n) * p, p, to + n * width + r * p);
    } else {
      std::fill_n(to, x.keys * width, T(0));
    }
    for (int64_t c = 0; c < x.chunks; ++c)
      for (int64_t h = 0; h < x.heads; ++h) {
        const T last = total_decay(GroupChunk<T>(x, b, c, group), h, sums);
        const T* before = x.state(states, b, c, group) + h * x.width;
        add_scaled(last, before, width, x.keys, x.width, x.state(states, b, c + 1, group) + h * x.width, width);
      }
  });
}

template <class T>
void outputs(const ScalarDecay& in, const Layout<T>& x, const Tensor& states, const Tensor& o) {
  for_parts(x, [&](const GroupChunk<T>& p) {
    const int64_t width = x.group_width(), square = x.chunk * x.chunk;
    T *scores = scratch<T, 22>(2 * square + x.chunk * width + x.chunk), *decayed = scores + square, *from_state = decayed + square,
      *sums = from_state + x.chunk * width;
    gemm_serial<T>(false, true, p.size, p.size, x.keys, 1, p.q, x.row_k(), p.k, x.row_k(), false, scores, x.chunk);
    const bool empty_state = p.first_of_zeros(in);
    if (!empty_state)
      gemm_serial<T>(false, false, p.size, width, x.keys, 1, p.q, x.row_k(), x.state(states, p.b, p.c, p.group), width, false, from_state,
                     width);
    for (int64_t h = 0; h < x.heads; ++h) {
      const T* running = p.running(h, sums);
      T* out = o.data<T>() + p.first * x.row_v + p.column(h);
      if (!empty_state) scale_by_head(running, p.size, from_state + h * x.width, width, x.width, out, x.row_v);
      decay_scores(running, p.size, scores, x.chunk, decayed, x.chunk);
      gemm_serial<T>(false, false, p.size, x.width, p.size, 1, decayed, x.chunk, p.v + h * x.width, x.row_v, !empty_state, out, x.row_v);
    }
  });
}

/// d_states[c] = (q ∘ head)ᵀ d_o of chunk c.
template <class T>
void local_gradients(const Layout<T>& x, const ScalarDecayGradients& out) {
  for_parts(x, [&](const GroupChunk<T>& p) {
    const int64_t width = x.group_width();
    T *headed = scratch<T, 22>(x.chunk * width + x.chunk), *sums = headed + x.chunk * width;
    for (int64_t h = 0; h < x.heads; ++h)
      scale_by_head(p.running(h, sums), p.size, out.d_o.data<T>() + p.first * x.row_v + p.column(h), x.row_v, x.width, headed + h * x.width,
                    width);
    gemm_serial<T>(true, false, x.keys, width, p.size, 1, p.q, x.row_k(), headed, width, false, x.state(out.d_states, p.b, p.c, p.group),
                   width);
  });
}

/// d_states[c] += last ∘ d_states[c + 1], from the end.
template <class T>
void chain_gradients(const ScalarDecay& in, const Layout<T>& x, const ScalarDecayGradients& out) {
  parallel_for(x.batch * x.groups, [&](int64_t task) {
    const int64_t b = task / x.groups, group = task % x.groups, width = x.group_width(), p = in.v.dim(3);
    T *sums = scratch<T, 22>(x.chunk), *end = x.state(out.d_states, b, x.chunks, group);
    const auto given = [&](const Tensor& state) { return state.data<T>() + b * x.state_size() + group * x.keys * width; };
    if (out.d_end) {
      const T* from = given(out.d_end);
      for (int64_t n = 0; n < x.keys; ++n)
        for (int64_t r = 0; r < width / p; ++r) std::copy_n(from + (r * x.keys + n) * p, p, end + n * width + r * p);
    } else {
      std::fill_n(end, x.keys * width, T(0));
    }
    for (int64_t c = x.chunks; c-- > 0;)
      for (int64_t h = 0; h < x.heads; ++h) {
        const T last = total_decay(GroupChunk<T>(x, b, c, group), h, sums);
        add_scaled(last, x.state(out.d_states, b, c + 1, group) + h * x.width, width, x.keys, x.width,
                   x.state(out.d_states, b, c, group) + h * x.width, width);
      }
    if (!out.d_start) return;
    T *to = given(out.d_start), *from = x.state(out.d_states, b, 0, group);
    for (int64_t n = 0; n < x.keys; ++n)
      for (int64_t r = 0; r < width / p; ++r) std::copy_n(from + n * width + r * p, p, to + (r * x.keys + n) * p);
  });
}

/// Scratch of one task of the last pass.
template <class T>
struct Workspace {
  T *scores, *decayed, *d_scores, *products, *from_state, *to_state, *headed, *tailed, *sums, *d_sums;
  explicit Workspace(const Layout<T>& x) {
    const int64_t square = x.chunk * x.chunk, rows = x.chunk * x.group_width();
    T* at = scratch<T, 22>(4 * square + 4 * rows + 2 * x.chunk);
    for (T** p : {&scores, &decayed, &d_scores, &products}) *p = at, at += square;
    for (T** p : {&from_state, &to_state, &headed, &tailed}) *p = at, at += rows;
    sums = at, d_sums = at + x.chunk;
  }
};

/// dv, dg and the gradient of the scores of one head.
template <class T>
void head_gradients(const GroupChunk<T>& p, const Workspace<T>& workspace, const ScalarDecayGradients& out, const Tensor& states, int64_t h,
                    bool empty_state) {
  const Layout<T>& x = p.x;
  const int64_t width = x.group_width();
  const T *running = p.running(h, workspace.sums), *v = p.v + h * x.width, *d_o = out.d_o.data<T>() + p.first * x.row_v + p.column(h);
  T* dv = out.dv.data<T>() + p.first * x.row_v + p.column(h);
  gemm_serial<T>(false, true, p.size, p.size, x.width, 1, d_o, x.row_v, v, x.row_v, false, workspace.products, x.chunk);
  decay_scores(running, p.size, workspace.scores, x.chunk, workspace.decayed, x.chunk);
  scale_by_tail(running, p.size, workspace.to_state + h * x.width, width, x.width, dv, x.row_v);
  gemm_serial<T>(true, false, p.size, x.width, p.size, 1, workspace.decayed, x.chunk, d_o, x.row_v, true, dv, x.row_v);
  decay_scores(running, p.size, workspace.products, x.chunk, workspace.decayed, x.chunk);
  add_lower(workspace.decayed, x.chunk, p.size, workspace.d_scores, x.chunk);
  scale_by_head(running, p.size, d_o, x.row_v, x.width, workspace.headed + h * x.width, width);
  scale_by_tail(running, p.size, v, x.row_v, x.width, workspace.tailed + h * x.width, width);
  if (!out.dg) return;

  T* d = workspace.d_sums;
  decay_gradient(workspace.decayed, workspace.scores, x.chunk, p.size, d);
  T into_end = 0;
  for (int64_t i = 0; i < p.size; ++i) {
    if (!empty_state) d[i] += dot_rows(workspace.headed + i * width + h * x.width, workspace.from_state + i * width + h * x.width, x.width);
    const T w = dot_rows(workspace.tailed + i * width + h * x.width, workspace.to_state + i * width + h * x.width, x.width);
    d[i] -= w, into_end += w;
  }
  if (!empty_state) {
    T kept = 0;
    for (int64_t n = 0; n < x.keys; ++n)
      kept += dot_rows(x.state(states, p.b, p.c, p.group) + n * width + h * x.width,
                       x.state(out.d_states, p.b, p.c + 1, p.group) + n * width + h * x.width, x.width);
    into_end += std::exp(running[p.size - 1]) * kept;
  }
  d[p.size - 1] += into_end;
}

/// dg of a chunk: dG summed from the right. Groups that share one decay are added by sum_groups.
template <class T>
void put_decay_gradient(const GroupChunk<T>& p, const T* d_sums, int64_t h, const Tensor& dg) {
  const int64_t columns = dg.dim(2);
  T* out = dg.data<T>() + p.first * columns + p.group * p.x.heads + h;
  T sum = 0;
  for (int64_t i = p.size; i-- > 0;) out[i * columns] = sum += d_sums[i];
}

template <class T>
void input_gradients(const ScalarDecay& in, const Layout<T>& x, const Tensor& states, const ScalarDecayGradients& out) {
  for_parts(x, [&](const GroupChunk<T>& p) {
    const Workspace<T> workspace(x);
    const int64_t width = x.group_width();
    const bool empty_state = p.first_of_zeros(in);
    const T *state = x.state(states, p.b, p.c, p.group), *d_next = x.state(out.d_states, p.b, p.c + 1, p.group);
    gemm_serial<T>(false, true, p.size, p.size, x.keys, 1, p.q, x.row_k(), p.k, x.row_k(), false, workspace.scores, x.chunk);
    gemm_serial<T>(false, false, p.size, width, x.keys, 1, p.k, x.row_k(), d_next, width, false, workspace.to_state, width);
    if (!empty_state)
      gemm_serial<T>(false, false, p.size, width, x.keys, 1, p.q, x.row_k(), state, width, false, workspace.from_state, width);
    std::fill_n(workspace.d_scores, x.chunk * x.chunk, T(0));
    for (int64_t h = 0; h < x.heads; ++h) {
      head_gradients(p, workspace, out, states, h, empty_state);
      if (out.dg) put_decay_gradient(p, workspace.d_sums, h, out.dg);
    }
    const int64_t at = p.first * x.row_k() + p.group * x.keys;
    if (out.dq) {
      T* dq = out.dq.tensor.data<T>() + at;
      gemm_serial<T>(false, false, p.size, x.keys, p.size, 1, workspace.d_scores, x.chunk, p.k, x.row_k(), out.dq.add, dq, x.row_k());
      if (!empty_state) gemm_serial<T>(false, true, p.size, x.keys, width, 1, workspace.headed, width, state, width, true, dq, x.row_k());
    }
    if (out.dk) {
      T* dk = out.dk.tensor.data<T>() + at;
      gemm_serial<T>(true, false, p.size, x.keys, p.size, 1, workspace.d_scores, x.chunk, p.q, x.row_k(), out.dk.add, dk, x.row_k());
      gemm_serial<T>(false, true, p.size, x.keys, width, 1, workspace.tailed, width, d_next, width, true, dk, x.row_k());
    }
  });
}

}  // namespace

Shape ScalarDecay::states_shape() const {
  const int64_t chunk = std::min(kChunk, q.dim(1));
  return {q.dim(0), (q.dim(1) + chunk - 1) / chunk + 1, q.dim(2), q.dim(3), v.dim(2) * v.dim(3) / q.dim(2)};
}

double ScalarDecay::flops() const {
  const double chunk = static_cast<double>(std::min(kChunk, q.dim(1))), keys = static_cast<double>(q.dim(3)),
               values = static_cast<double>(v.dim(2) * v.dim(3)), tokens = static_cast<double>(q.dim(0) * q.dim(1));
  return tokens * (2 * chunk * keys * static_cast<double>(q.dim(2)) + 2 * chunk * values + 4 * keys * values);
}

template <class T>
void scalar_decay(const ScalarDecay& in, const Tensor& states, const Tensor& o) {
  const Layout<T> x(in);
  local_states(x, states);
  chain_states(in, x, states);
  if (o) outputs(in, x, states, o);
}

template <class T>
void scalar_decay_end(const ScalarDecay& in, const Tensor& states, const Tensor& end) {
  const Layout<T> x(in);
  const int64_t width = x.group_width(), p = in.v.dim(3);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t group = 0; group < x.groups; ++group) {
      const T* from = x.state(states, b, x.chunks, group);
      T* to = end.data<T>() + b * x.state_size() + group * x.keys * width;
      for (int64_t n = 0; n < x.keys; ++n)
        for (int64_t r = 0; r < width / p; ++r) std::copy_n(from + n * width + r * p, p, to + (r * x.keys + n) * p);
    }
}

template <class T>
void scalar_decay_backward(const ScalarDecay& in, const Tensor& states, const ScalarDecayGradients& out) {
  const Layout<T> x(in);
  local_gradients(x, out);
  chain_gradients(in, x, out);
  input_gradients(in, x, states, out);
}

#define INSTANTIATE(T)                                                                 \
  template void scalar_decay<T>(const ScalarDecay&, const Tensor&, const Tensor&);     \
  template void scalar_decay_end<T>(const ScalarDecay&, const Tensor&, const Tensor&); \
  template void scalar_decay_backward<T>(const ScalarDecay&, const Tensor&, const ScalarDecayGradients&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace saccade::cpu

#include "kernels/ops/delta_rule/cpu_chunks.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/delta_rule/cpu_triangle.h"
#include "kernels/ops/scalar_decay/chunk_decay.h"

namespace saccade::cpu {
namespace {

/// One head of one sequence.
template <class T>
struct Head {
  int64_t length, heads, keys, values, chunk, chunks;
  int64_t row_k, row_v;  ///< elements between consecutive tokens
  T scale;
  int64_t index, sequence_rows;  ///< b H + h; b T
  int64_t h;
  const T *q, *k, *v, *beta, *g;  ///< of token 0

  Head(const DeltaRule& in, int64_t task)
      : length(in.q.dim(1)),
        heads(in.q.dim(2)),
        keys(in.q.dim(3)),
        values(in.v.dim(3)),
        chunk(std::min(kDeltaChunk, length)),
        chunks((length + chunk - 1) / chunk),
        row_k(heads * keys),
        row_v(heads * values),
        scale(static_cast<T>(in.scale)),
        index(task),
        sequence_rows(task / heads * length),
        h(task % heads),
        q(of_keys(in.q)),
        k(of_keys(in.k)),
        v(of_values(in.v)),
        beta(of_token(in.beta)),
        g(in.g ? of_token(in.g) : nullptr) {}

  T* of_keys(const Tensor& x) const { return x ? x.data<T>() + sequence_rows * row_k + h * keys : nullptr; }
  T* of_values(const Tensor& x) const { return x ? x.data<T>() + sequence_rows * row_v + h * values : nullptr; }
  T* of_token(const Tensor& x) const { return x ? x.data<T>() + sequence_rows * heads + h : nullptr; }
  T* of_state(const Tensor& x) const { return x ? x.data<T>() + index * keys * values : nullptr; }
  T* chunk_state(const Tensor& states, int64_t c) const { return states.data<T>() + (index * chunks + c) * keys * values; }
  int64_t first(int64_t c) const { return c * chunk; }
  int64_t size(int64_t c) const { return std::min(chunk, length - c * chunk); }
};

/// Scratch of one task.
template <class T>
struct Workspace {
  static constexpr int kSquares = 6, kKeyRows = 3, kValueRows = 5, kLines = 4;
  T *gamma, *n, *p, *dp, *da, *dn;   // [L, L]
  T *keys1, *keys2, *keys3;          // [L, K]
  T *ks, *r, *dx, *kds, *z;          // [L, V]
  T *beta, *sums, *d_sums, *d_beta;  // [L]
  T *state, *d_state;                // [K, V]
  explicit Workspace(const Head<T>& x) {
    const int64_t square = x.chunk * x.chunk, keys = x.chunk * x.keys, values = x.chunk * x.values, state_size = x.keys * x.values;
    T* at = scratch<T, 23>(kSquares * square + kKeyRows * keys + kValueRows * values + kLines * x.chunk + 2 * state_size);
    const auto take = [&at](std::initializer_list<T**> pointers, int64_t size) {
      for (T** pointer : pointers) *pointer = at, at += size;
    };
    take({&gamma, &n, &p, &dp, &da, &dn}, square);
    take({&keys1, &keys2, &keys3}, keys);
    take({&ks, &r, &dx, &kds, &z}, values);
    take({&beta, &sums, &d_sums, &d_beta}, x.chunk);
    take({&state, &d_state}, state_size);
  }
};

/// β and the running decays of a chunk, in a row each; null without decay.
template <class T>
const T* gather_gates(const Head<T>& x, int64_t c, const Workspace<T>& workspace) {
  T sum = 0;
  for (int64_t i = 0; i < x.size(c); ++i) {
    workspace.beta[i] = x.beta[(x.first(c) + i) * x.heads];
    if (x.g) workspace.sums[i] = sum += x.g[(x.first(c) + i) * x.heads];
  }
  return x.g ? workspace.sums : nullptr;
}

template <class T>
void scale_state(T factor, int64_t size, T* state) {
  for (int64_t i = 0; factor != T(1) && i < size; ++i) state[i] *= factor;
}

/// N, and R = v − e^{G} ∘ (k S) with k S left in workspace.ks.
template <class T>
void erase(const Head<T>& x, int64_t c, const T* running, const T* state, const Workspace<T>& workspace) {
  const int64_t size = x.size(c), L = x.chunk;
  const T *k = x.k + x.first(c) * x.row_k, *v = x.v + x.first(c) * x.row_v;
  decay_matrix(running, size, workspace.gamma, L);
  gemm_serial<T>(false, true, size, size, x.keys, 1, k, x.row_k, k, x.row_k, false, workspace.n, L);
  multiply_below(workspace.gamma, size, L, workspace.n);
  gemm_serial<T>(false, false, size, x.values, x.keys, 1, k, x.row_k, state, x.values, false, workspace.ks, x.values);
  scale_by_head(running, size, workspace.ks, x.values, x.values, workspace.r, x.values);
  subtract_from(v, x.row_v, size, x.values, workspace.r);
}

/// S ← e^{G_L} S + (k ∘ e^{G_L − G})ᵀ X
template <class T>
void advance_state(const Head<T>& x, int64_t c, const T* running, const T* corrected, const Workspace<T>& workspace, T* state) {
  const int64_t size = x.size(c);
  scale_by_tail(running, size, x.k + x.first(c) * x.row_k, x.row_k, x.keys, workspace.keys1, x.keys);
  if (running) scale_state(std::exp(running[size - 1]), x.keys * x.values, state);
  gemm_serial<T>(true, false, x.keys, x.values, size, 1, workspace.keys1, x.keys, corrected, x.values, true, state, x.values);
}

template <class T>
void forward_chunk(const Head<T>& x, int64_t c, const Workspace<T>& workspace, T* o, T* corrected) {
  const int64_t size = x.size(c), L = x.chunk, at = x.first(c);
  const T *running = gather_gates(x, c, workspace), *q = x.q + at * x.row_k, *k = x.k + at * x.row_k;
  erase(x, c, running, workspace.state, workspace);
  solve_forward(workspace.beta, workspace.n, size, L, x.values, workspace.r);
  if (o) {
    T* out = o + at * x.row_v;
    gemm_serial<T>(false, false, size, x.values, x.keys, x.scale, q, x.row_k, workspace.state, x.values, false, workspace.ks, x.values);
    scale_by_head(running, size, workspace.ks, x.values, x.values, out, x.row_v);
    gemm_serial<T>(false, true, size, size, x.keys, x.scale, q, x.row_k, k, x.row_k, false, workspace.p, L);
    multiply_lower(workspace.gamma, size, L, workspace.p);
    gemm_serial<T>(false, false, size, x.values, size, 1, workspace.p, L, workspace.r, x.values, true, out, x.row_v);
  }
  if (corrected)
    for (int64_t i = 0; i < size; ++i) std::copy_n(workspace.r + i * x.values, x.values, corrected + (at + i) * x.row_v);
  advance_state(x, c, running, workspace.r, workspace, workspace.state);
}

/// Gradients of one chunk; workspace.d_state goes from the chunk's end to its start.
template <class T>
void backward_chunk(const Head<T>& x, int64_t c, const Workspace<T>& workspace, const T* state, const T* corrected,
                    const DeltaGradients& out) {
  const int64_t size = x.size(c), L = x.chunk, at = x.first(c), V = x.values, K = x.keys;
  const T *running = gather_gates(x, c, workspace), *q = x.q + at * x.row_k, *k = x.k + at * x.row_k;
  const T *X = corrected + at * x.row_v, *d_o = x.of_values(out.d_o) + at * x.row_v;
  T *dq = x.of_keys(out.dq) + at * x.row_k, *dk = x.of_keys(out.dk) + at * x.row_k;
  erase(x, c, running, state, workspace);
  gemm_serial<T>(false, true, size, size, K, x.scale, q, x.row_k, k, x.row_k, false, workspace.p, L);
  multiply_lower(workspace.gamma, size, L, workspace.p);

  // dX = Pᵀ dO + (k ∘ tail) dS',   Y = (I + diag(β) N)⁻ᵀ dX in its place
  gemm_serial<T>(false, false, size, V, K, 1, k, x.row_k, workspace.d_state, V, false, workspace.z, V);
  scale_by_tail(running, size, workspace.z, V, V, workspace.kds, V);
  std::copy_n(workspace.kds, size * V, workspace.dx);
  gemm_serial<T>(true, false, size, V, size, 1, workspace.p, L, d_o, x.row_v, true, workspace.dx, V);
  solve_backward(workspace.beta, workspace.n, size, L, V, workspace.dx);
  const T* Y = workspace.dx;

  gemm_serial<T>(false, true, size, size, V, 1, d_o, x.row_v, X, x.row_v, false, workspace.dp, L);
  gemm_serial<T>(false, true, size, size, V, -1, Y, V, X, x.row_v, false, workspace.da, L);
  // Z = −head ∘ β ∘ Y, dv = β ∘ Y, dβ = Y · R + Σ_j dA_ij N_ij
  for (int64_t i = 0; i < size; ++i) {
    T* dv = x.of_values(out.dv) + (at + i) * x.row_v;
    for (int64_t j = 0; j < V; ++j) dv[j] = workspace.beta[i] * Y[i * V + j];
    for (int64_t j = 0; j < V; ++j) workspace.z[i * V + j] = -dv[j];
    workspace.d_beta[i] = dot_rows(Y + i * V, workspace.r + i * V, V) + dot_rows(workspace.da + i * L, workspace.n + i * L, i);
    x.of_token(out.d_beta)[(at + i) * x.heads] = workspace.d_beta[i];
  }
  if (running) scale_by_head(running, size, workspace.z, V, V, workspace.z, V);

  // dN = (β ∘ dA) ∘ Γ, and the decay's part F = dP ∘ P + dA ∘ (β ∘ N) below the diagonal
  pair_gradients(workspace.beta, workspace.gamma, x.scale, size, L, workspace.dp, workspace.da, workspace.p, workspace.n, workspace.dn,
                 workspace.d_sums);

  gemm_serial<T>(false, true, size, K, V, x.scale, d_o, x.row_v, state, V, false, workspace.keys2, K);
  scale_by_head(running, size, workspace.keys2, K, K, workspace.keys1, K);  // scale head ∘ (dO Sᵀ)
  gemm_serial<T>(false, true, size, K, V, 1, X, x.row_v, workspace.d_state, V, false, workspace.keys3, K);
  scale_by_tail(running, size, workspace.keys3, K, K, workspace.keys2, K);  // tail ∘ (X dS'ᵀ)
  for (int64_t i = 0; i < size; ++i) {
    std::copy_n(workspace.keys1 + i * K, K, dq + i * x.row_k);
    std::copy_n(workspace.keys2 + i * K, K, dk + i * x.row_k);
  }
  gemm_serial<T>(false, false, size, K, size, 1, workspace.dp, L, k, x.row_k, true, dq, x.row_k);
  gemm_serial<T>(true, false, size, K, size, 1, workspace.dp, L, q, x.row_k, true, dk, x.row_k);
  gemm_serial<T>(false, true, size, K, V, 1, workspace.z, V, state, V, true, dk, x.row_k);
  gemm_serial<T>(false, false, size, K, size, 1, workspace.dn, L, k, x.row_k, true, dk, x.row_k);
  gemm_serial<T>(true, false, size, K, size, 1, workspace.dn, L, k, x.row_k, true, dk, x.row_k);

  const T last = running ? std::exp(running[size - 1]) : T(1);
  if (out.dg) {
    T into_end = last * dot_rows(state, workspace.d_state, K * V);
    for (int64_t i = 0; i < size; ++i) {
      const T w = dot_rows(X + i * x.row_v, workspace.kds + i * V, V);
      workspace.d_sums[i] +=
          dot_rows(q + i * x.row_k, workspace.keys1 + i * K, K) + dot_rows(workspace.z + i * V, workspace.ks + i * V, V) - w;
      into_end += w;
    }
    T sum = into_end;
    for (int64_t i = size; i-- > 0;) x.of_token(out.dg)[(at + i) * x.heads] = sum += workspace.d_sums[i];
  }
  // dS = last dS' + scale (q ∘ head)ᵀ dO + kᵀ Z
  scale_state(last, K * V, workspace.d_state);
  scale_by_head(running, size, q, x.row_k, K, workspace.keys1, K);
  gemm_serial<T>(true, false, K, V, size, x.scale, workspace.keys1, K, d_o, x.row_v, true, workspace.d_state, V);
  gemm_serial<T>(true, false, K, V, size, 1, k, x.row_k, workspace.z, V, true, workspace.d_state, V);
}

template <class T>
void load_state(const T* from, int64_t size, T* to) {
  if (from)
    std::copy_n(from, size, to);
  else
    std::fill_n(to, size, T(0));
}

}  // namespace

Shape delta_states_shape(const DeltaRule& in) {
  const int64_t chunk = std::min(kDeltaChunk, in.q.dim(1));
  return {in.q.dim(0), in.q.dim(2), (in.q.dim(1) + chunk - 1) / chunk, in.q.dim(3), in.v.dim(3)};
}

template <class T>
void delta_rule_forward(const DeltaRule& in, const Tensor& o, const Tensor& end, const DeltaRecord& record) {
  parallel_for(in.q.dim(0) * in.q.dim(2), [&](int64_t task) {
    const Head<T> x(in, task);
    const Workspace<T> workspace(x);
    const int64_t size = x.keys * x.values;
    load_state<T>(x.of_state(in.state.start), size, workspace.state);
    for (int64_t c = 0; c < x.chunks; ++c) {
      if (record.states) std::copy_n(workspace.state, size, x.chunk_state(record.states, c));
      forward_chunk(x, c, workspace, x.of_values(o), x.of_values(record.x));
    }
    if (end) std::copy_n(workspace.state, size, x.of_state(end));
  });
}

template <class T>
void delta_rule_backward(const DeltaRule& in, const DeltaRecord& record, const DeltaGradients& out) {
  parallel_for(in.q.dim(0) * in.q.dim(2), [&](int64_t task) {
    const Head<T> x(in, task);
    const Workspace<T> workspace(x);
    const int64_t size = x.keys * x.values;
    load_state<T>(x.of_state(out.d_end), size, workspace.d_state);
    for (int64_t c = x.chunks; c-- > 0;) backward_chunk<T>(x, c, workspace, x.chunk_state(record.states, c), x.of_values(record.x), out);
    if (out.d_start) std::copy_n(workspace.d_state, size, x.of_state(out.d_start));
  });
}

#define INSTANTIATE(T)                                                                                     \
  template void delta_rule_forward<T>(const DeltaRule&, const Tensor&, const Tensor&, const DeltaRecord&); \
  template void delta_rule_backward<T>(const DeltaRule&, const DeltaRecord&, const DeltaGradients&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace saccade::cpu

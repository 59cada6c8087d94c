#include "kernels/ops/taylor_attention/cpu_chunks.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/scalar_decay/chunk_decay.h"
#include "kernels/ops/taylor_attention/cpu_features.h"
#include "kernels/ops/taylor_attention/taylor_attention.h"

namespace saccade::cpu {
namespace {

/// One head of one sequence.
template <class T>
struct Head {
  int64_t length, d, values, row_k, row_v, count;  ///< count: features F
  int64_t chunks, index;
  T scale;
  const T *q, *k, *v;
  Head(const TaylorAttention& in, int64_t task)
      : length(in.q.dim(1)),
        d(in.q.dim(3)),
        values(in.v.dim(3)),
        row_k(in.q.dim(2) * d),
        row_v(in.q.dim(2) * values),
        count(taylor_features(d)),
        chunks((length + kTaylorChunk - 1) / kTaylorChunk),
        index(task),
        scale(static_cast<T>(1 / std::sqrt(static_cast<double>(d)))),
        q(keys(in.q)),
        k(keys(in.k)),
        v(of_values(in.v)) {}
  T* keys(const Tensor& x) const { return x.data<T>() + index / heads() * length * row_k + index % heads() * d; }
  T* of_values(const Tensor& x) const { return x.data<T>() + index / heads() * length * row_v + index % heads() * values; }
  int64_t heads() const { return row_k / d; }
  int64_t state_size() const { return count * (values + 1); }
};

/// A tile of queries of a chunk: tokens first … first + rows − 1, which see keys from `begin` (the chunk's first token) on.
struct Tile {
  int64_t begin, first, rows;
  int64_t keys() const { return first + rows - begin; }
  int64_t first_visible() const { return first - begin; }
};

template <class Body>
void for_tiles(int64_t length, int64_t chunk, Body body) {
  const int64_t begin = chunk * kTaylorChunk, end = std::min(length, begin + kTaylorChunk);
  for (int64_t first = begin; first < end; first += kTaylorTile) body(Tile{begin, first, std::min(kTaylorTile, end - first)});
}

template <class T>
struct Workspace {
  T *s, *p;          ///< [tile, chunk]
  T *phi, *d_phi;    ///< [tile, F]
  T *rows, *d_rows;  ///< [tile, V + 1]
  T *sums, *d_sums;  ///< [tile]
  T *state, *d_state;
  explicit Workspace(const Head<T>& x) {
    const int64_t pairs = kTaylorTile * std::min(kTaylorChunk, x.length), wide = kTaylorTile * x.count,
                  narrow = kTaylorTile * (x.values + 1);
    T* at = scratch<T, 25>(2 * (pairs + wide + narrow + kTaylorTile + x.state_size()));
    const auto take = [&at](T*& first, T*& second, int64_t size) { first = at, second = at + size, at += 2 * size; };
    take(s, p, pairs);
    take(phi, d_phi, wide);
    take(rows, d_rows, narrow);
    take(sums, d_sums, kTaylorTile);
    take(state, d_state, x.state_size());
  }
};

/// s and p of a tile, and the sums of its rows.
template <class T>
void score_tile(const Head<T>& x, const Tile& tile, const Workspace<T>& workspace) {
  gemm_serial<T>(false, true, tile.rows, tile.keys(), x.d, x.scale, x.q + tile.first * x.row_k, x.row_k, x.k + tile.begin * x.row_k,
                 x.row_k, false, workspace.s, tile.keys());
  taylor_rows(workspace.s, tile.rows, tile.keys(), tile.first_visible(), workspace.p, workspace.sums);
}

/// [v | 1] of a tile's own tokens.
template <class T>
void load_values(const Head<T>& x, const Tile& tile, T* rows) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    std::copy_n(x.v + (tile.first + r) * x.row_v, x.values, rows + r * (x.values + 1));
    rows[r * (x.values + 1) + x.values] = 1;
  }
}

/// S += φ(k)ᵀ [v | 1] over a chunk.
template <class T>
void advance_state(const Head<T>& x, int64_t chunk, const Workspace<T>& workspace) {
  const int64_t width = x.values + 1;
  for_tiles(x.length, chunk, [&](const Tile& tile) {
    features(x.k + tile.first * x.row_k, x.row_k, tile.rows, x.d, workspace.phi);
    load_values(x, tile, workspace.rows);
    gemm_serial<T>(true, false, x.count, width, tile.rows, 1, workspace.phi, x.count, workspace.rows, width, true, workspace.state, width);
  });
}

template <class T>
void forward_tile(const Head<T>& x, const Tile& tile, bool state, const Workspace<T>& workspace, T* o, T* denominator) {
  const int64_t width = x.values + 1;
  score_tile(x, tile, workspace);
  gemm_serial<T>(false, false, tile.rows, x.values, tile.keys(), 1, workspace.p, tile.keys(), x.v + tile.begin * x.row_v, x.row_v, false,
                 workspace.rows, width);
  for (int64_t r = 0; r < tile.rows; ++r) workspace.rows[r * width + x.values] = workspace.sums[r];
  if (state) {
    features(x.q + tile.first * x.row_k, x.row_k, tile.rows, x.d, workspace.phi);
    gemm_serial<T>(false, false, tile.rows, width, x.count, 1, workspace.phi, x.count, workspace.state, width, true, workspace.rows, width);
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    const T* row = workspace.rows + r * width;
    denominator[tile.first + r] = row[x.values];
    const T inverse = 1 / (row[x.values] + static_cast<T>(kTaylorEpsilon));
    for (int64_t i = 0; i < x.values; ++i) o[(tile.first + r) * x.row_v + i] = row[i] * inverse;
  }
}

/// Gradients of one tile through the pairs of its chunk, and of its queries through the state; d_state gets φ(q)ᵀ dn.
template <class T>
void backward_tile(const Head<T>& x, const Tile& tile, int64_t chunk, const T* state, const Workspace<T>& workspace,
                   const TaylorGradients& out) {
  const int64_t width = x.values + 1, keys = tile.keys(), at_k = tile.first * x.row_k, at_v = tile.first * x.row_v;
  const T *o = x.of_values(out.o), *d_o = x.of_values(out.d_o), *denominator = out.denominator.data<T>() + x.index * x.length;
  T *dq = x.keys(out.dq) + at_k, *dk = x.keys(out.dk) + tile.begin * x.row_k, *dv = x.of_values(out.dv) + tile.begin * x.row_v;
  score_tile(x, tile, workspace);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const T inverse = 1 / (denominator[tile.first + r] + static_cast<T>(kTaylorEpsilon));
    const T *from = d_o + at_v + r * x.row_v, *row = o + at_v + r * x.row_v;
    T* dn = workspace.d_rows + r * width;
    for (int64_t i = 0; i < x.values; ++i) dn[i] = from[i] * inverse;
    workspace.d_sums[r] = dn[x.values] = -dot_rows(from, row, x.values) * inverse;
  }
  gemm_serial<T>(true, false, keys, x.values, tile.rows, 1, workspace.p, keys, workspace.d_rows, width, true, dv, x.row_v);
  gemm_serial<T>(false, true, tile.rows, keys, x.values, 1, workspace.d_rows, width, x.v + tile.begin * x.row_v, x.row_v, false,
                 workspace.p, keys);
  taylor_slopes(workspace.s, tile.rows, keys, tile.first_visible(), workspace.d_sums, x.scale, workspace.p);
  gemm_serial<T>(false, false, tile.rows, x.d, keys, 1, workspace.p, keys, x.k + tile.begin * x.row_k, x.row_k, false, dq, x.row_k);
  gemm_serial<T>(true, false, keys, x.d, tile.rows, 1, workspace.p, keys, x.q + at_k, x.row_k, true, dk, x.row_k);
  if (chunk == 0) return;
  gemm_serial<T>(false, true, tile.rows, x.count, width, 1, workspace.d_rows, width, state, width, false, workspace.d_phi, x.count);
  add_feature_gradients(x.q + at_k, x.row_k, tile.rows, x.d, workspace.d_phi, dq);
  features(x.q + at_k, x.row_k, tile.rows, x.d, workspace.phi);
  gemm_serial<T>(true, false, x.count, width, tile.rows, 1, workspace.phi, x.count, workspace.d_rows, width, true, workspace.d_state,
                 width);
}

/// Gradients of a chunk's keys and values through the state that later chunks read.
template <class T>
void state_gradients(const Head<T>& x, int64_t chunk, const Workspace<T>& workspace, const TaylorGradients& out) {
  const int64_t width = x.values + 1;
  for_tiles(x.length, chunk, [&](const Tile& tile) {
    const T* k = x.k + tile.first * x.row_k;
    load_values(x, tile, workspace.rows);
    gemm_serial<T>(false, true, tile.rows, x.count, width, 1, workspace.rows, width, workspace.d_state, width, false, workspace.d_phi,
                   x.count);
    add_feature_gradients(k, x.row_k, tile.rows, x.d, workspace.d_phi, x.keys(out.dk) + tile.first * x.row_k);
    features(k, x.row_k, tile.rows, x.d, workspace.phi);
    gemm_serial<T>(false, false, tile.rows, x.values, x.count, 1, workspace.phi, x.count, workspace.d_state, width, true,
                   x.of_values(out.dv) + tile.first * x.row_v, x.row_v);
  });
}

template <class T>
void clear_rows(int64_t length, int64_t row, int64_t width, T* x) {
  for (int64_t t = 0; t < length; ++t) std::fill_n(x + t * row, width, T(0));
}

}  // namespace

Shape taylor_states_shape(const TaylorAttention& in) {
  return {in.q.dim(0) * in.q.dim(2), (in.q.dim(1) + kTaylorChunk - 1) / kTaylorChunk, taylor_features(in.q.dim(3)), in.v.dim(3) + 1};
}

template <class T>
void taylor_forward(const TaylorAttention& in, const Tensor& o, const Tensor& denominator) {
  parallel_for(in.q.dim(0) * in.q.dim(2), [&](int64_t task) {
    const Head<T> x(in, task);
    const Workspace<T> workspace(x);
    T* carried = in.state ? in.state.data<T>() + task * x.state_size() : nullptr;
    if (carried)
      std::copy_n(carried, x.state_size(), workspace.state);
    else
      std::fill_n(workspace.state, x.state_size(), T(0));
    for (int64_t c = 0; c < x.chunks; ++c) {
      for_tiles(x.length, c, [&](const Tile& tile) {
        forward_tile(x, tile, carried || c > 0, workspace, x.of_values(o), denominator.data<T>() + task * x.length);
      });
      if (carried || c + 1 < x.chunks) advance_state(x, c, workspace);
    }
    if (carried) std::copy_n(workspace.state, x.state_size(), carried);
  });
}

template <class T>
void taylor_backward(const TaylorAttention& in, const TaylorGradients& out) {
  parallel_for(in.q.dim(0) * in.q.dim(2), [&](int64_t task) {
    const Head<T> x(in, task);
    const Workspace<T> workspace(x);
    T* states = out.states.data<T>() + task * x.chunks * x.state_size();
    std::fill_n(workspace.state, x.state_size(), T(0));
    std::fill_n(workspace.d_state, x.state_size(), T(0));
    for (int64_t c = 1; c < x.chunks; ++c) {
      advance_state(x, c - 1, workspace);
      std::copy_n(workspace.state, x.state_size(), states + c * x.state_size());
    }
    clear_rows(x.length, x.row_k, x.d, x.keys(out.dk));
    clear_rows(x.length, x.row_v, x.values, x.of_values(out.dv));
    for (int64_t c = x.chunks; c-- > 0;) {
      if (c + 1 < x.chunks) state_gradients(x, c, workspace, out);
      for_tiles(x.length, c, [&](const Tile& tile) { backward_tile<T>(x, tile, c, states + c * x.state_size(), workspace, out); });
    }
  });
}

#define INSTANTIATE(T)                                                                   \
  template void taylor_forward<T>(const TaylorAttention&, const Tensor&, const Tensor&); \
  template void taylor_backward<T>(const TaylorAttention&, const TaylorGradients&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace saccade::cpu

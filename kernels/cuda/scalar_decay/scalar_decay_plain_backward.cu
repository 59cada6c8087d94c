#include "kernels/cuda/scalar_decay/scalar_decay_plain.cuh"

namespace saccade::cuda::decay {
namespace {

using namespace plain;

/// Gradients of one head, null or empty where not wanted.
template <class T>
struct Gradients {
  const T* d_o;
  Goal<T> dx;
  float *d_step, *d_skip, *dg, *d_scores;
};

/// Sums over rows of a chunk that a block collects.
struct ChunkSums {
  float dG[kChunk], w[kChunk], step[kChunk], skip[kChunk], columns[kColumns][kChunk];

  __device__ void clear() {
    for (int i = threadIdx.x; i < kChunk; i += kThreads) dG[i] = w[i] = step[i] = skip[i] = 0;
  }
  /// dG −= the sums over rows of a tile's value(row, column, element).
  template <class Value>
  __device__ void subtract_columns(Accumulator& c, const Value& value) {
    for (int j = 0; j < kOwn; ++j) {
      float sum = 0;
      for (int i = 0; i < kOwn; ++i) sum += value(row_of(i), column_of(j), c[i][j]);
      columns[row_of(0) / kOwn][column_of(j)] = sum;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < kChunk; j += kThreads)
      for (int r = 0; r < kColumns; ++r) dG[j] -= columns[r][j];
    __syncthreads();
  }
};

/// d_scores of a head and what the decays gain from pairs.
template <class T>
__device__ void pair_gradients(const Form<T>& f, const Gradients<T>& out, const ChunkPosition& p, const Decays& decays, const float* scores,
                               Workspace& workspace, ChunkSums& sums) {
  Accumulator c;
  clear(c);
  accumulate<Fast::sum, Fast::sum>(
      c, workspace, f.width, [&](int i, int w) { return i < p.size ? to_float(out.d_o[f.value_row(p, i) + w]) : 0.0f; },
      [&](int j, int w) { return j < p.size ? decays.step[j] * to_float(f.x[f.value_row(p, j) + w]) : 0.0f; });
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j) c[i][j] *= decays.pair(row_of(i), column_of(j));
  for_own(c, [&](int i, int j, float value) { out.d_scores[f.head_scores(p) + i * kChunk + j] = value; });
  const auto below = [&](int i, int j, float value) { return j < i ? value * scores[i * kChunk + j] : 0.0f; };
  add_row_sums(c, sums.dG, below);
  __syncthreads();
  sums.subtract_columns(c, below);
}

/// dx of up to 64 columns, and the columns' part of the sums.
template <class T>
__device__ void column_gradients(const Form<T>& f, const Gradients<T>& out, const ChunkPosition& p, int p0, const Decays& decays,
                                 const float* scores, const float* state, const float* d_next, Workspace& workspace, ChunkSums& sums) {
  const auto x = [&](int i, int w) { return i < p.size && p0 + w < f.width ? to_float(f.x[f.value_row(p, i) + p0 + w]) : 0.0f; };
  const auto d_o = [&](int i, int w) { return i < p.size && p0 + w < f.width ? to_float(out.d_o[f.value_row(p, i) + p0 + w]) : 0.0f; };
  Accumulator c;
  if (state) {
    clear(c);
    accumulate<Fast::sum, Fast::tile>(
        c, workspace, f.keys, [&](int i, int n) { return i < p.size ? to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
        [&](int w, int n) { return p0 + w < f.width ? state[int64_t{n} * f.width + p0 + w] : 0.0f; });
    add_row_sums(c, sums.dG, [&](int i, int w, float value) { return decays.head[i] * value * d_o(i, w); });
  }
  clear(c);
  accumulate<Fast::sum, Fast::tile>(
      c, workspace, f.keys, [&](int j, int n) { return j < p.size ? decays.tail[j] * to_float(f.k[f.key_row(p, j) + n]) : 0.0f; },
      [&](int w, int n) { return p0 + w < f.width ? d_next[int64_t{n} * f.width + p0 + w] : 0.0f; });
  add_row_sums(c, sums.w, [&](int j, int w, float value) { return decays.step[j] * value * x(j, w); });
  accumulate<Fast::tile, Fast::tile>(
      c, workspace, p.size, [&](int j, int i) { return scores[i * kChunk + j] * decays.pair(i, j); },
      [&](int w, int i) { return d_o(i, w); });
  add_row_sums(c, sums.step, [&](int j, int w, float value) { return value * x(j, w); });
  add_row_sums(c, sums.skip, [&](int j, int w, float) { return d_o(j, w) * x(j, w); });
  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  for_own(c, [&](int j, int w, float value) {
    if (j < p.size && p0 + w < f.width) out.dx.put(f.value_row(p, j) + p0 + w, decays.step[j] * value + skip * d_o(j, w));
  });
}

/// A block owns a chunk of a head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    head_gradients_kernel(Form<T> f, Gradients<T> out, const float* all_scores, const float* states, const float* d_states) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Decays decays;
  __shared__ ChunkSums sums;
  const ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const float *scores = all_scores + f.scores(p), *state = f.empty_state(p) ? nullptr : states + f.state(p.b, p.c, p.h),
              *d_next = d_states + f.state(p.b, p.c + 1, p.h);
  decays.load(f, p);
  sums.clear();
  __syncthreads();
  pair_gradients(f, out, p, decays, scores, workspace, sums);
  for (int p0 = 0; p0 < f.width; p0 += kTile) column_gradients(f, out, p, p0, decays, scores, state, d_next, workspace, sums);
  float kept = 0;
  for (int i = threadIdx.x; state && i < f.keys * f.width; i += kThreads) kept += state[i] * d_next[i];
  kept = block_sum<kThreads>(kept);
  __syncthreads();
  for (int i = threadIdx.x; i < p.size; i += kThreads) {
    out.d_step[f.line(p) + i] = sums.step[i];
    out.d_skip[f.line(p) + i] = sums.skip[i];
  }
  if (threadIdx.x != 0 || !out.dg) return;
  float sum = decays.last() * kept;
  for (int i = 0; i < p.size; ++i) sum += sums.w[i];
  for (int i = p.size; i-- > 0;) out.dg[f.line(p) + i] = sum += sums.dG[i] - sums.w[i];
}

/// dq (kKeys: dk) of 64 keys of a chunk of a group, summed over its heads: from pairs, then from the states.
template <bool kKeys, class T>
__global__ void __launch_bounds__(kThreads)
    key_gradients_kernel(Form<T> f, const T* d_o, const float* d_scores, const float* states, Goal<T> to) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Decays decays;
  ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.groups);
  const int n0 = static_cast<int>(blockIdx.y) * kTile, shared = f.heads / f.groups;
  p.h = p.group * shared;
  const float* pairs = d_scores + f.head_scores(p);
  const T *others = kKeys ? f.q : f.k, *values = kKeys ? f.x : d_o;
  Accumulator c;
  clear(c);
  accumulate<kKeys ? Fast::tile : Fast::sum, Fast::tile>(
      c, workspace, p.size,
      [&](int row, int other) {
        float sum = 0;
        for (int h = 0; h < shared; ++h) sum += pairs[h * kChunk * kChunk + (kKeys ? other * kChunk + row : row * kChunk + other)];
        return sum;
      },
      [&](int n, int other) { return n0 + n < f.keys ? to_float(others[f.key_row(p, other) + n0 + n]) : 0.0f; });
  for (int h = 0; h < shared && (kKeys || !f.empty_state(p)); ++h, ++p.h) {
    const float* state = states + f.state(p.b, kKeys ? p.c + 1 : p.c, p.h);
    decays.load(f, p);
    accumulate<Fast::sum, Fast::sum>(
        c, workspace, f.width,
        [&](int i, int w) {
          if (i >= p.size) return 0.0f;
          return to_float(values[f.value_row(p, i) + w]) * (kKeys ? decays.tail[i] * decays.step[i] : decays.head[i]);
        },
        [&](int n, int w) { return n0 + n < f.keys ? state[int64_t{n0 + n} * f.width + w] : 0.0f; });
  }
  for_own(c, [&](int i, int n, float value) {
    if (i < p.size && n0 + n < f.keys) to.put(f.key_row(p, i) + n0 + n, value);
  });
}

}  // namespace

void plain_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  plain_states(stream, in, scratch, {});
  plain_state_gradients(stream, in, scratch, out);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    const T* d_o = pointer<T>(out.d_o);
    float *states = pointer<float>(scratch.states), *d_states = pointer<float>(scratch.d_states),
          *d_scores = pointer<float>(scratch.d_scores);
    const Gradients<T> head{
        d_o, goal<T>(out.dx), pointer<float>(out.d_step), pointer<float>(out.d_skip), pointer_or_null<float>(out.dg), d_scores};
    head_gradients_kernel<T><<<grid.heads, kThreads, 0, stream>>>(f, head, pointer<float>(scratch.scores), states, d_states);
    const dim3 tiles(grid.groups, grid.key_tiles);
    if (out.dq) key_gradients_kernel<false, T><<<tiles, kThreads, 0, stream>>>(f, d_o, d_scores, states, goal<T>(out.dq));
    if (out.dk) key_gradients_kernel<true, T><<<tiles, kThreads, 0, stream>>>(f, d_o, d_scores, d_states, goal<T>(out.dk));
  });
  check_launch();
}

}  // namespace saccade::cuda::decay

// The scalar-decay chunk form in float32 without tensor cores: any sizes. Scores and local states of all chunks, states chained,
// outputs; backward likewise.
#include "kernels/cuda/plain_tile.cuh"
#include "kernels/cuda/scalar_decay_tiles.cuh"

namespace saccade::cuda {
namespace {

using namespace plain;
using decay::Form, decay::kChunk, decay::Place;
static_assert(kChunk == kTile);

/// Decays of a chunk of one head: G, e^{G}, e^{G_last − G} and the steps.
struct Decays {
  float running[kChunk], head[kChunk], tail[kChunk], step[kChunk];

  template <class T>
  __device__ void load(const Form<T>& f, const Place& p) {
    const float* G = f.running_of(p);
    for (int i = threadIdx.x; i < kChunk; i += kThreads) {
      const int token = min(i, p.size - 1);
      running[i] = G ? G[token] : 0.0f;
      head[i] = expf(running[i]);
      tail[i] = G ? expf(G[p.size - 1] - running[i]) : 1.0f;
      step[i] = f.step ? f.step[f.line(p) + token] : 1.0f;
    }
  }
  __device__ float pair(int i, int j) const { return j <= i ? expf(running[i] - running[j]) : 0.0f; }
  __device__ float last() const { return head[kChunk - 1]; }
};

/// A block owns a chunk of a group.
template <class T>
__global__ void __launch_bounds__(kThreads) scores_kernel(Form<T> f, float* scores) {
  __shared__ alignas(16) Room room;
  const Place p = f.place(static_cast<int>(blockIdx.x), f.groups);
  Accumulator c;
  clear(c);
  accumulate<Fast::sum, Fast::sum>(
      c, room, f.keys, [&](int i, int n) { return i < p.size ? to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
      [&](int j, int n) { return j < p.size ? to_float(f.k[f.key_row(p, j) + n]) : 0.0f; });
  for_own(c, [&](int i, int j, float value) { scores[f.scores(p) + i * kChunk + j] = value; });
}

/// states[c + 1] = (k ∘ tail)ᵀ v, or d_states[c] = (q ∘ head)ᵀ d_o: a block owns a tile of a chunk's state.
template <bool kGradient, class T>
__global__ void __launch_bounds__(kThreads) local_states_kernel(Form<T> f, const T* d_o, float* states) {
  __shared__ alignas(16) Room room;
  __shared__ Decays decays;
  const Place p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const int tiles = (f.width + kTile - 1) / kTile, n0 = static_cast<int>(blockIdx.y) / tiles * kTile,
            p0 = static_cast<int>(blockIdx.y) % tiles * kTile;
  decays.load(f, p);
  const T *keys = kGradient ? f.q : f.k, *values = kGradient ? d_o : f.x;
  Accumulator c;
  clear(c);
  accumulate<Fast::tile, Fast::tile>(
      c, room, p.size, [&](int n, int j) { return n0 + n < f.keys ? to_float(keys[f.key_row(p, j) + n0 + n]) : 0.0f; },
      [&](int w, int j) {
        if (p0 + w >= f.width) return 0.0f;
        return to_float(values[f.value_row(p, j) + p0 + w]) * (kGradient ? decays.head[j] : decays.tail[j] * decays.step[j]);
      });
  float* to = states + f.state(p.b, kGradient ? p.c : p.c + 1, p.h);
  for_own(c, [&](int n, int w, float value) {
    if (n0 + n < f.keys && p0 + w < f.width) to[int64_t{n0 + n} * f.width + p0 + w] = value;
  });
}

/// states[c + 1] += last ∘ states[c] in order, or d_states[c] += last ∘ d_states[c + 1] from the end. A thread owns an element of a
/// head's state; `from` may be null: zeros, so may `to`.
template <bool kGradient, class T>
__global__ void chain_kernel(Form<T> f, float* states, const float* from, float* to) {
  constexpr int kAhead = 8;
  const int element = static_cast<int>(blockIdx.y * kThreads + threadIdx.x), size = f.keys * f.width;
  const int b = static_cast<int>(blockIdx.x) / f.heads, h = static_cast<int>(blockIdx.x) % f.heads;
  if (element >= size) return;
  const int64_t given = int64_t{blockIdx.x} * size + element;
  float carried = from ? from[given] : 0.0f;
  states[f.state(b, kGradient ? f.chunks : 0, h) + element] = carried;
  for (int begin = 0; begin < f.chunks; begin += kAhead) {
    float local[kAhead], last[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (begin + i >= f.chunks) continue;
      const int c = kGradient ? f.chunks - 1 - begin - i : begin + i;
      const Place p{b, c, h, 0, c * kChunk, min(kChunk, f.length - c * kChunk)};
      local[i] = states[f.state(b, kGradient ? c : c + 1, h) + element];
      last[i] = f.running ? expf(f.running_of(p)[p.size - 1]) : 1.0f;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (begin + i >= f.chunks) continue;
      const int c = kGradient ? f.chunks - 1 - begin - i : begin + i + 1;
      carried = fmaf(last[i], carried, local[i]);
      states[f.state(b, c, h) + element] = carried;
    }
  }
  if (to) to[given] = carried;
}

/// A block owns a chunk and up to 64 columns of a head.
template <class T>
__global__ void __launch_bounds__(kThreads) outputs_kernel(Form<T> f, const float* scores, const float* states, T* o) {
  __shared__ alignas(16) Room room;
  __shared__ Decays decays;
  const Place p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const int p0 = static_cast<int>(blockIdx.y) * kTile;
  decays.load(f, p);
  Accumulator c;
  clear(c);
  const auto x = [&](int w, int j) { return p0 + w < f.width ? to_float(f.x[f.value_row(p, j) + p0 + w]) : 0.0f; };
  accumulate<Fast::sum, Fast::tile>(
      c, room, p.size, [&](int i, int j) { return scores[f.scores(p) + i * kChunk + j] * decays.pair(i, j) * decays.step[j]; }, x);
  if (!f.empty_state(p)) {
    const float* state = states + f.state(p.b, p.c, p.h);
    accumulate<Fast::sum, Fast::tile>(
        c, room, f.keys, [&](int i, int n) { return i < p.size ? decays.head[i] * to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
        [&](int w, int n) { return p0 + w < f.width ? state[int64_t{n} * f.width + p0 + w] : 0.0f; });
  }
  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  for_own(c, [&](int i, int w, float value) {
    if (i < p.size && p0 + w < f.width) o[f.value_row(p, i) + p0 + w] = from_float<T>(value + skip * x(w, i));
  });
}

/// Gradients of one head, null or empty where not wanted.
template <class T>
struct Gradients {
  const T* d_o;
  T* dx;
  bool add;
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
__device__ void pair_gradients(const Form<T>& f, const Gradients<T>& out, const Place& p, const Decays& decays, const float* scores,
                               Room& room, ChunkSums& sums) {
  Accumulator c;
  clear(c);
  accumulate<Fast::sum, Fast::sum>(
      c, room, f.width, [&](int i, int w) { return i < p.size ? to_float(out.d_o[f.value_row(p, i) + w]) : 0.0f; },
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
__device__ void column_gradients(const Form<T>& f, const Gradients<T>& out, const Place& p, int p0, const Decays& decays,
                                 const float* scores, const float* state, const float* d_next, Room& room, ChunkSums& sums) {
  const auto x = [&](int i, int w) { return i < p.size && p0 + w < f.width ? to_float(f.x[f.value_row(p, i) + p0 + w]) : 0.0f; };
  const auto d_o = [&](int i, int w) { return i < p.size && p0 + w < f.width ? to_float(out.d_o[f.value_row(p, i) + p0 + w]) : 0.0f; };
  Accumulator c;
  if (state) {
    clear(c);
    accumulate<Fast::sum, Fast::tile>(
        c, room, f.keys, [&](int i, int n) { return i < p.size ? to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
        [&](int w, int n) { return p0 + w < f.width ? state[int64_t{n} * f.width + p0 + w] : 0.0f; });
    add_row_sums(c, sums.dG, [&](int i, int w, float value) { return decays.head[i] * value * d_o(i, w); });
  }
  clear(c);
  accumulate<Fast::sum, Fast::tile>(
      c, room, f.keys, [&](int j, int n) { return j < p.size ? decays.tail[j] * to_float(f.k[f.key_row(p, j) + n]) : 0.0f; },
      [&](int w, int n) { return p0 + w < f.width ? d_next[int64_t{n} * f.width + p0 + w] : 0.0f; });
  add_row_sums(c, sums.w, [&](int j, int w, float value) { return decays.step[j] * value * x(j, w); });
  accumulate<Fast::tile, Fast::tile>(
      c, room, p.size, [&](int j, int i) { return scores[i * kChunk + j] * decays.pair(i, j); }, [&](int w, int i) { return d_o(i, w); });
  add_row_sums(c, sums.step, [&](int j, int w, float value) { return value * x(j, w); });
  add_row_sums(c, sums.skip, [&](int j, int w, float) { return d_o(j, w) * x(j, w); });
  if (!out.dx) return;
  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  for_own(c, [&](int j, int w, float value) {
    if (j < p.size && p0 + w < f.width) put(out.dx + f.value_row(p, j) + p0 + w, decays.step[j] * value + skip * d_o(j, w), out.add);
  });
}

/// A block owns a chunk of a head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    head_gradients_kernel(Form<T> f, Gradients<T> out, const float* all_scores, const float* states, const float* d_states) {
  __shared__ alignas(16) Room room;
  __shared__ Decays decays;
  __shared__ ChunkSums sums;
  const Place p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const float *scores = all_scores + f.scores(p), *state = f.empty_state(p) ? nullptr : states + f.state(p.b, p.c, p.h),
              *d_next = d_states + f.state(p.b, p.c + 1, p.h);
  decays.load(f, p);
  sums.clear();
  __syncthreads();
  pair_gradients(f, out, p, decays, scores, room, sums);
  for (int p0 = 0; p0 < f.width; p0 += kTile) column_gradients(f, out, p, p0, decays, scores, state, d_next, room, sums);
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
    key_gradients_kernel(Form<T> f, const T* d_o, const float* d_scores, const float* states, T* to, bool add) {
  __shared__ alignas(16) Room room;
  __shared__ Decays decays;
  Place p = f.place(static_cast<int>(blockIdx.x), f.groups);
  const int n0 = static_cast<int>(blockIdx.y) * kTile, shared = f.heads / f.groups;
  p.h = p.group * shared;
  const float* pairs = d_scores + f.head_scores(p);
  const T *others = kKeys ? f.q : f.k, *values = kKeys ? f.x : d_o;
  Accumulator c;
  clear(c);
  accumulate<kKeys ? Fast::tile : Fast::sum, Fast::tile>(
      c, room, p.size,
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
        c, room, f.width,
        [&](int i, int w) {
          if (i >= p.size) return 0.0f;
          return to_float(values[f.value_row(p, i) + w]) * (kKeys ? decays.tail[i] * decays.step[i] : decays.head[i]);
        },
        [&](int n, int w) { return n0 + n < f.keys ? state[int64_t{n0 + n} * f.width + w] : 0.0f; });
  }
  for_own(c, [&](int i, int n, float value) {
    if (i < p.size && n0 + n < f.keys) put(to + f.key_row(p, i) + n0 + n, value, add);
  });
}

/// Launch sizes.
template <class T>
struct Grid {
  unsigned heads, groups, key_tiles, width_tiles;
  dim3 chain;
  explicit Grid(const Form<T>& f, int64_t batch)
      : heads(static_cast<unsigned>(batch * f.chunks * f.heads)),
        groups(static_cast<unsigned>(batch * f.chunks * f.groups)),
        key_tiles(blocks_for(f.keys, kTile)),
        width_tiles(blocks_for(f.width, kTile)),
        chain(static_cast<unsigned>(batch * f.heads), blocks_for(int64_t{f.keys} * f.width, kThreads)) {}
};

float* optional(const Tensor& x) { return x ? pointer<float>(x) : nullptr; }

/// Scores and states of all chunks.
template <class T>
void fill_states(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& end) {
  const Form<T> f(in);
  const Grid<T> grid(f, in.x.dim(0));
  float* states = pointer<float>(scratch.states);
  scores_kernel<T><<<grid.groups, kThreads, 0, stream>>>(f, pointer<float>(scratch.scores));
  local_states_kernel<false, T><<<dim3(grid.heads, grid.key_tiles * grid.width_tiles), kThreads, 0, stream>>>(f, nullptr, states);
  chain_kernel<false, T><<<grid.chain, kThreads, 0, stream>>>(f, states, f.start, optional(end));
  check_launch();
}

template <class T>
void key_gradients(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  const Form<T> f(in);
  const Grid<T> grid(f, in.x.dim(0));
  const dim3 blocks(grid.groups, grid.key_tiles);
  const T* d_o = pointer<T>(out.d_o);
  const float* d_scores = pointer<float>(scratch.d_scores);
  if (out.dq)
    key_gradients_kernel<false, T>
        <<<blocks, kThreads, 0, stream>>>(f, d_o, d_scores, pointer<float>(scratch.states), pointer<T>(out.dq.tensor), out.dq.add);
  if (out.dk)
    key_gradients_kernel<true, T>
        <<<blocks, kThreads, 0, stream>>>(f, d_o, d_scores, pointer<float>(scratch.d_states), pointer<T>(out.dk.tensor), out.dk.add);
  check_launch();
}

void forward_on_tensor_cores(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end) {
  decay::launch_scores(stream, in, scratch.scores);
  decay::launch_sweep<decay::Pass::outputs>(
      stream, in, {.scores = pointer<bf16>(scratch.scores), .out = pointer<bf16>(o), .from = Form<bf16>(in).start, .to = optional(end)});
}

void backward_on_tensor_cores(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  const auto target = [](const GradTarget& to) { return to ? pointer<bf16>(to.tensor) : nullptr; };
  const bf16 *scores = pointer<bf16>(scratch.scores), *d_o = pointer<bf16>(out.d_o);
  bf16 *states = pointer<bf16>(scratch.states), *d_states = pointer<bf16>(scratch.d_states);
  float *reads = pointer<float>(scratch.reads), *writes = pointer<float>(scratch.writes);
  decay::launch_scores(stream, in, scratch.scores);
  decay::launch_sweep<decay::Pass::states>(stream, in, {.d_o = d_o, .states = states, .from = Form<bf16>(in).start, .reads = reads});
  decay::launch_sweep<decay::Pass::gradients>(stream, in,
                                              {.scores = scores,
                                               .d_o = d_o,
                                               .out = target(out.dx),
                                               .add = out.dx.add,
                                               .states = d_states,
                                               .from = optional(out.d_end),
                                               .to = optional(out.d_start),
                                               .writes = writes,
                                               .d_step = pointer<float>(out.d_step),
                                               .d_skip = pointer<float>(out.d_skip)});
  decay::launch_key_gradients(
      stream, in, {scores, d_o, states, d_states, reads, writes, target(out.dq), target(out.dk), out.dq.add, out.dk.add, optional(out.dg)});
}

}  // namespace

void scalar_decay(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end) {
  if (runs_on_tensor_cores(in)) return forward_on_tensor_cores(stream, in, scratch, o, end);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    fill_states<T>(stream, in, scratch, end);
    outputs_kernel<T><<<dim3(grid.heads, grid.width_tiles), kThreads, 0, stream>>>(f, pointer<float>(scratch.scores),
                                                                                   pointer<float>(scratch.states), pointer<T>(o));
    check_launch();
  });
}

void scalar_decay_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  if (runs_on_tensor_cores(in)) return backward_on_tensor_cores(stream, in, scratch, out);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    fill_states<T>(stream, in, scratch, {});
    const T* d_o = pointer<T>(out.d_o);
    float* d_states = pointer<float>(scratch.d_states);
    local_states_kernel<true, T><<<dim3(grid.heads, grid.key_tiles * grid.width_tiles), kThreads, 0, stream>>>(f, d_o, d_states);
    chain_kernel<true, T><<<grid.chain, kThreads, 0, stream>>>(f, d_states, optional(out.d_end), optional(out.d_start));
    const Gradients<T> head{d_o,
                            out.dx ? pointer<T>(out.dx.tensor) : nullptr,
                            out.dx.add,
                            pointer<float>(out.d_step),
                            pointer<float>(out.d_skip),
                            optional(out.dg),
                            pointer<float>(scratch.d_scores)};
    head_gradients_kernel<T>
        <<<grid.heads, kThreads, 0, stream>>>(f, head, pointer<float>(scratch.scores), pointer<float>(scratch.states), d_states);
    check_launch();
    key_gradients<T>(stream, in, scratch, out);
  });
}

}  // namespace saccade::cuda

#include "kernels/cuda/scalar_decay/scalar_decay_plain.cuh"

namespace saccade::cuda::decay {
namespace {

using namespace plain;

/// A block owns a chunk of a group.
template <class T>
__global__ void __launch_bounds__(kThreads) scores_kernel(Form<T> f, float* scores) {
  __shared__ alignas(16) Workspace workspace;
  const ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.groups);
  Accumulator c;
  clear(c);
  accumulate<Fast::sum, Fast::sum>(
      c, workspace, f.keys, [&](int i, int n) { return i < p.size ? to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
      [&](int j, int n) { return j < p.size ? to_float(f.k[f.key_row(p, j) + n]) : 0.0f; });
  for_own(c, [&](int i, int j, float value) { scores[f.scores(p) + i * kChunk + j] = value; });
}

/// states[c + 1] = (k ∘ tail)ᵀ v, or d_states[c] = (q ∘ head)ᵀ d_o: a block owns a tile of a chunk's state.
template <bool kGradient, class T>
__global__ void __launch_bounds__(kThreads) local_states_kernel(Form<T> f, const T* d_o, float* states) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Decays decays;
  const ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const int tiles = (f.width + kTile - 1) / kTile, n0 = static_cast<int>(blockIdx.y) / tiles * kTile,
            p0 = static_cast<int>(blockIdx.y) % tiles * kTile;
  decays.load(f, p);
  const T *keys = kGradient ? f.q : f.k, *values = kGradient ? d_o : f.x;
  Accumulator c;
  clear(c);
  accumulate<Fast::tile, Fast::tile>(
      c, workspace, p.size, [&](int n, int j) { return n0 + n < f.keys ? to_float(keys[f.key_row(p, j) + n0 + n]) : 0.0f; },
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
      const ChunkPosition p{b, c, h, 0, c * kChunk, min(kChunk, f.length - c * kChunk)};
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
  __shared__ alignas(16) Workspace workspace;
  __shared__ Decays decays;
  const ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.heads);
  const int p0 = static_cast<int>(blockIdx.y) * kTile;
  decays.load(f, p);
  Accumulator c;
  clear(c);
  const auto x = [&](int w, int j) { return p0 + w < f.width ? to_float(f.x[f.value_row(p, j) + p0 + w]) : 0.0f; };
  accumulate<Fast::sum, Fast::tile>(
      c, workspace, p.size, [&](int i, int j) { return scores[f.scores(p) + i * kChunk + j] * decays.pair(i, j) * decays.step[j]; }, x);
  if (!f.empty_state(p)) {
    const float* state = states + f.state(p.b, p.c, p.h);
    accumulate<Fast::sum, Fast::tile>(
        c, workspace, f.keys, [&](int i, int n) { return i < p.size ? decays.head[i] * to_float(f.q[f.key_row(p, i) + n]) : 0.0f; },
        [&](int w, int n) { return p0 + w < f.width ? state[int64_t{n} * f.width + p0 + w] : 0.0f; });
  }
  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  for_own(c, [&](int i, int w, float value) {
    if (i < p.size && p0 + w < f.width) o[f.value_row(p, i) + p0 + w] = from_float<T>(value + skip * x(w, i));
  });
}

}  // namespace

void plain_states(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& end) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    float* states = pointer<float>(scratch.states);
    scores_kernel<T><<<grid.groups, kThreads, 0, stream>>>(f, pointer<float>(scratch.scores));
    local_states_kernel<false, T><<<dim3(grid.heads, grid.key_tiles * grid.width_tiles), kThreads, 0, stream>>>(f, nullptr, states);
    chain_kernel<false, T><<<grid.chain, kThreads, 0, stream>>>(f, states, f.start, pointer_or_null<float>(end));
  });
  check_launch();
}

void plain_state_gradients(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    float* d_states = pointer<float>(scratch.d_states);
    local_states_kernel<true, T>
        <<<dim3(grid.heads, grid.key_tiles * grid.width_tiles), kThreads, 0, stream>>>(f, pointer<T>(out.d_o), d_states);
    chain_kernel<true, T>
        <<<grid.chain, kThreads, 0, stream>>>(f, d_states, pointer_or_null<float>(out.d_end), pointer_or_null<float>(out.d_start));
  });
  check_launch();
}

void plain_forward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end) {
  plain_states(stream, in, scratch, end);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Form<T> f(in);
    const Grid<T> grid(f, in.x.dim(0));
    outputs_kernel<T><<<dim3(grid.heads, grid.width_tiles), kThreads, 0, stream>>>(f, pointer<float>(scratch.scores),
                                                                                   pointer<float>(scratch.states), pointer<T>(o));
  });
  check_launch();
}

}  // namespace saccade::cuda::decay

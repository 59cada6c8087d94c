// One pass over the chunks of a head, its state in registers: a block of P / 16 warps owns a segment of the head, a warp 16 columns of x.
//
// Forward and backward are one recurrence with parts exchanged. With rows that read (q | k) and write (k | q) and values (x | d_o):
//   out_t = Σ_s mix_ts value_s + read_t ∘ (S row_t),   S ← last S + Σ_s (write_s value_s) row_sᵀ,   S [P, N]
// where mix is ((q kᵀ) ∘ Γ) step from the left, or its transpose without steps from the right.
#include "kernels/cuda/scalar_decay/scalar_decay_sweep.cuh"

namespace saccade::cuda::decay {
namespace {

template <int P, int N>
struct Sizes {
  static constexpr int kWarps = P / 16, kThreads = 32 * kWarps;
  static constexpr uint32_t kKeys = kChunk * N * 2, kValues = kChunk * P * 2, kScores = kChunk * kChunk * 2;
  static constexpr uint32_t kShared = kTileAlignment + 2 * kKeys + 3 * kValues + kScores;
};

/// What thread t < kChunk knows of its token: decays to the token (head) and from it to the chunk's end (tail).
template <bool kForward, int kWarps>
__device__ __forceinline__ void put_token(TokenWorkspace<kWarps>& workspace, const TokenDecay& decay) {
  const int t = static_cast<int>(threadIdx.x);
  const float head = exp2_approximate(decay.running), tail = exp2_approximate(decay.end - decay.running);
  workspace.running[t] = decay.running, workspace.step[t] = decay.step, workspace.stepped[t] = decay.running - log2f(decay.step);
  workspace.read[t] = kForward ? head : tail;
  workspace.write[t] = kForward ? tail * decay.step : head;
}

/// Of this thread's token.
template <int kWarps>
__device__ __forceinline__ float sum_of_warps(const TokenWorkspace<kWarps>& workspace, int which) {
  float total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += workspace.sums[which][w][threadIdx.x];
  return total;
}

/// A chunk's rows of P outputs from shared to device memory, 16 bytes at a time.
template <int P, int kThreads>
__device__ __forceinline__ void put_output(const Form<bf16>& f, const Sweep& s, const ChunkPosition& of, const SharedRows<P>& made,
                                           int64_t stride) {
  constexpr int kPieces = P / 8, kStep = kThreads / kPieces;
  const int first = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
  bf16* to = s.out + f.value_row(of, first) + piece * 8;
#pragma unroll
  for (int i = 0; i < kChunk / kStep; ++i, to += kStep * stride)
    if (first + i * kStep < of.size) put_16(to, load_shared_16(made.at(first + i * kStep, piece)), s.add);
}

template <Pass kPass, int P, int N>
__global__ void __launch_bounds__(Sizes<P, N>::kThreads, 384 / Sizes<P, N>::kThreads) sweep_kernel(Form<bf16> f, Sweep s) {
  using Size = Sizes<P, N>;
  constexpr int kThreads = Size::kThreads;
  constexpr bool kForward = kPass != Pass::gradients, kMixes = kPass != Pass::states, kGradients = !kForward;
  extern __shared__ char shared[];
  __shared__ TokenWorkspace<Size::kWarps> workspace;
  const uint32_t base = aligned_tiles(shared);
  const KeyRows<N> readers{base}, writers{base + Size::kKeys};
  const SharedRows<P> values{base + 2 * Size::kKeys}, others{values.base + Size::kValues}, made{others.base + Size::kValues};
  const SharedRows<kChunk> mix{made.base + Size::kValues};

  const Segment segment(f, static_cast<int>(blockIdx.x));
  ChunkPosition p = segment.place(f);
  const int begin = p.c, steps = segment.chunks(f);
  const auto go_to = [&](int step) {
    p.c = kForward ? begin + step : begin + steps - 1 - step;
    p.first = p.c * kChunk, p.size = min(kChunk, f.length - p.first);
  };
  const int64_t key_stride = int64_t{f.groups} * f.keys, value_stride = int64_t{f.heads} * P;
  TokenDecay decay;
  const auto load_readers = [&] {
    readers.template copy<kThreads>((kForward ? f.q : f.k) + f.key_row(p, 0), key_stride, p.size, f.keys);
    if constexpr (kMixes) copy_rows<kChunk, kThreads>(mix, s.scores + f.scores(p), kChunk, kChunk);
    copy_async_commit();
    if (threadIdx.x < kChunk) decay.load(f, p, static_cast<int>(threadIdx.x));
  };
  const auto load_writers = [&] {
    const int64_t at = f.value_row(p, 0);
    writers.template copy<kThreads>((kForward ? f.k : f.q) + f.key_row(p, 0), key_stride, p.size, f.keys);
    copy_rows<kChunk, kThreads>(values, (kForward ? f.x : s.d_o) + at, value_stride, p.size);
    if constexpr (kPass != Pass::outputs) copy_rows<kChunk, kThreads>(others, (kForward ? s.d_o : f.x) + at, value_stride, p.size);
    copy_async_commit();
  };

  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float state[N / 8][4] = {};
  for_state<P, N>(state, f.keys, [&](int element, float& x) { x = s.from ? s.from[int64_t{blockIdx.x} * f.keys * P + element] : 0.0f; });
  go_to(0);
  load_readers();
  load_writers();
  for (int step = 0; step < steps; ++step) {
    go_to(step);
    copy_async_wait_but<1>();
    if (threadIdx.x < kChunk) put_token<kForward>(workspace, decay);
    publish_writes();
    __syncthreads();  // readers and scores are there
    if constexpr (kMixes) mix_scores<kForward, kWarpgroup<P>, kThreads>(mix, workspace, skip);
    Output out;
    read_state<P, N>(out, state, readers);
    scale_tokens(out, workspace.read);
    if constexpr (kPass != Pass::outputs) store_state<P, N>(state, f, p, s.states);
    copy_async_wait();
    publish_writes();
    __syncthreads();  // writers, values, others and mix are there
    Values x, other;
    load_values(x, values);
    if constexpr (kPass != Pass::outputs) {
      load_values(other, others);
      put_token_sums(workspace.sums[0][warp], [&](int n, int i) { return out[n][i] * value(other, n, i); });
    }
    if constexpr (kMixes) {
      add_mixed<kForward, P>(out, x, mix);
      if constexpr (kGradients) {
        load_values(other, others);  // again: kept, it would not fit beside the product
        put_token_sums(workspace.sums[1][warp], [&](int n, int i) { return out[n][i] * value(other, n, i); });
        put_token_sums(workspace.sums[2][warp], [&](int n, int i) { return value(x, n, i) * value(other, n, i); });
        scale_tokens(out, workspace.step);
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) out[n][i] = fmaf(skip, value(x, n, i), out[n][i]);
      }
      store_output<P>(out, made);
    }
    __syncthreads();  // readers and mix are free
    const ChunkPosition done = p;
    const bool more = step + 1 < steps;
    const float last = exp2_approximate(workspace.running[kChunk - 1]),
                own_step = workspace.step[min(static_cast<int>(threadIdx.x), kChunk - 1)];
    if (more) {
      go_to(step + 1);
      load_readers();
    }
    write_state<P, N>(state, x, workspace.write, last, writers);
    __syncthreads();  // writers, values and others are free, made and the sums complete
    if (more) load_writers();
    if (kMixes && s.out) put_output<P, kThreads>(f, s, done, made, value_stride);
    if (kPass != Pass::outputs && static_cast<int>(threadIdx.x) < done.size) {
      const auto sum = [&](int which) { return sum_of_warps(workspace, which); };
      const int64_t line = f.line(done) + threadIdx.x;
      if constexpr (kPass == Pass::states) s.reads[line] = sum(0);
      if constexpr (kGradients) s.writes[line] = own_step * sum(0), s.d_step[line] = sum(1), s.d_skip[line] = sum(2);
    }
  }
  if (const Segment own(f, static_cast<int>(blockIdx.x)); s.to && own.index == (kForward ? f.segments - 1 : 0))
    for_state<P, N>(state, f.keys, [&](int element, float x) { s.to[int64_t{own.line} * f.keys * P + element] = x; });
}

/// A block of four warps owns a chunk of a group.
template <int N>
__global__ void __launch_bounds__(128) scores_kernel(Form<bf16> f, bf16* scores) {
  extern __shared__ __align__(128) char shared[];
  const SharedRows<N> q{shared_address(shared)}, k{q.base + kChunk * N * 2};
  const ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.groups);
  const int64_t stride = int64_t{f.groups} * f.keys;
  copy_rows<kChunk, 128>(q, f.q + f.key_row(p, 0), stride, p.size, f.keys);
  copy_rows<kChunk, 128>(k, f.k + f.key_row(p, 0), stride, p.size, f.keys);
  copy_async_commit();
  copy_async_wait();
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32 * 16;
  uint32_t a[1][N / 16][4];
#pragma unroll
  for (int n = 0; n < N / 16; ++n) q.load_a(a[0][n], row, n);
  float c[1][8][4];
  clear(c);
  multiply_rows<1, 8, N>(c, a, k, 0);
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bf16* to = scores + f.scores(p) + (row + lane / 4 + 8 * half) * kChunk + 8 * n + lane % 4 * 2;
      *reinterpret_cast<uint32_t*>(to) = pack_bf16(c[0][n][2 * half], c[0][n][2 * half + 1]);
    }
}

}  // namespace

void launch_scores(Stream stream, const DecayForm& in, const Tensor& scores) {
  with_sizes(in, [&](auto, auto n) {
    constexpr int kBytes = 2 * kChunk * n() * 2;
    const Form<bf16> f(in);
    scores_kernel<n()><<<static_cast<unsigned>(in.x.dim(0) * f.chunks * f.groups), 128, kBytes, stream>>>(f, pointer<bf16>(scores));
  });
  check_launch();
}

template <Pass kPass>
void launch_sweep(Stream stream, const DecayForm& in, const Sweep& sweep) {
  with_sizes(in, [&](auto p, auto n) {
    using Size = Sizes<p(), n()>;
    const auto kernel = sweep_kernel<kPass, p(), n()>;
    allow_shared(kernel, Size::kShared);
    const auto blocks = static_cast<unsigned>(in.x.dim(0) * in.x.dim(2) * in.segments());
    kernel<<<blocks, Size::kThreads, Size::kShared, stream>>>(Form<bf16>(in), sweep);
  });
  check_launch();
}
template void launch_sweep<Pass::outputs>(Stream, const DecayForm&, const Sweep&);
template void launch_sweep<Pass::states>(Stream, const DecayForm&, const Sweep&);
template void launch_sweep<Pass::gradients>(Stream, const DecayForm&, const Sweep&);

}  // namespace saccade::cuda::decay

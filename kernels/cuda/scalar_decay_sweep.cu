// One pass over the chunks of a head, its state in registers: a block of P / 16 warps owns the head, a warp 16 columns of x.
//
// Forward and backward are one recurrence with parts exchanged. With rows that read (q | k) and write (k | q) and values (x | d_o):
//   out_t = Σ_s mix_ts value_s + read_t ∘ (S row_t),   S ← last S + Σ_s (write_s value_s) row_sᵀ,   S [P, N]
// where mix is ((q kᵀ) ∘ Γ) step from the left, or its transpose without steps from the right.
#include "kernels/cuda/scalar_decay_tiles.cuh"

namespace saccade::cuda::decay {
namespace {

template <int P, int N>
struct Sizes {
  static constexpr int kWarps = P / 16, kThreads = 32 * kWarps;
  static constexpr uint32_t kKeys = kChunk * N * 2, kValues = kChunk * P * 2, kScores = kChunk * kChunk * 2;
  static constexpr uint32_t kShared = 2 * kKeys + 3 * kValues + kScores;
};

/// Factors of a chunk's tokens and sums over a head's columns.
template <int kWarps>
struct TokenRoom {
  float running[kChunk], read[kChunk], write[kChunk], step[kChunk];
  float stepped[kChunk];  ///< running − log2 step: a step with its column
  float sums[3][kWarps][kChunk];
};

/// x [16 columns, 64 tokens] as the left operand of products over tokens: element by element where an accumulator has (column, token).
using Values = uint32_t[4][4];
using Output = float[8][4];

template <int P>
__device__ __forceinline__ void load_values(Values& x, const SharedRows<P>& rows) {
#pragma unroll
  for (int k = 0; k < 4; ++k) load_a_transposed(x[k], rows, 16 * k, static_cast<int>(threadIdx.x) / 32 * 2);
}
__device__ __forceinline__ float value(const Values& x, int n, int i) {
  const uint32_t pair = x[n / 2][n % 2 * 2 + i / 2];
  return i % 2 ? high(pair) : low(pair);
}

/// to[token] = Σ over a warp's columns of product(tile, element); after the sums a lane holds two tokens.
template <class Product>
__device__ __forceinline__ void put_token_sums(float* to, const Product& product) {
  float sums[16];
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) sums[2 * n + e] = product(n, e) + product(n, 2 + e);
  lane_sums<16, 16, 4>(sums);
  *reinterpret_cast<float2*>(to + threadIdx.x % 32 * 2) = {sums[0], sums[1]};
}

/// c ∘ factor of the token
__device__ __forceinline__ void scale_tokens(Output& c, const float* factors) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 f = *reinterpret_cast<const float2*>(factors + 8 * n + threadIdx.x % 4 * 2);
    c[n][0] *= f.x, c[n][1] *= f.y, c[n][2] *= f.x, c[n][3] *= f.y;
  }
}

/// Scores become mix, in place; what lies above the diagonal's 16 x 16 blocks is not read. A thread owns eight columns.
template <bool kForward, int kThreads, int kWarps>
__device__ __forceinline__ void mix_scores(const SharedRows<kChunk>& scores, const TokenRoom<kWarps>& room, float skip) {
  constexpr int kRows = kThreads / 8;
  const int piece = static_cast<int>(threadIdx.x) % 8;
  float column[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) column[e] = kForward ? room.stepped[piece * 8 + e] : room.running[piece * 8 + e];
#pragma unroll
  for (int r = 0; r < kChunk / kRows; ++r) {
    const int i = static_cast<int>(threadIdx.x) / 8 + r * kRows, block = i / 16;
    if (block < piece / 2) continue;
    const float row = room.running[i];
    const uint4 given = load_shared_16(scores.at(i, piece));
    const uint32_t pairs[4] = {given.x, given.y, given.z, given.w};
    float m[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) m[e] = (e % 2 ? high(pairs[e / 2]) : low(pairs[e / 2])) * exp2_approximate(row - column[e]);
    if (block == piece / 2) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int j = piece * 8 + e;
        if (kForward && j == i) m[e] += skip;
        if (j > i) m[e] = 0;
      }
    }
    store_shared_16(scores.at(i, piece), {pack_bf16(m[0], m[1]), pack_bf16(m[2], m[3]), pack_bf16(m[4], m[5]), pack_bf16(m[6], m[7])});
  }
}

/// out += mix values: sums over the tokens s at or before (kForward), or at or behind, a token t.
template <bool kForward>
__device__ __forceinline__ void add_mixed(Output& out, const Values& values, const SharedRows<kChunk>& mix) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (kForward ? n < k : n > k) continue;
      uint32_t b[4];
      if (kForward)
        mix.load_b(b, 16 * n, k);
      else
        mix.load_b_transposed(b, 16 * k, n);
      multiply(out[2 * n], values[k], b[0], b[1]);
      multiply(out[2 * n + 1], values[k], b[2], b[3]);
    }
}

/// out = S rowᵀ of all tokens.
template <int N>
__device__ __forceinline__ void read_state(Output& out, const float (&state)[N / 8][4], const SharedRows<N>& rows) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) out[n][i] = 0;
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = pack_bf16(state[2 * k + i / 2][i % 2 * 2], state[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      uint32_t b[4];
      rows.load_b(b, 16 * n, k);
      multiply(out[2 * n], a, b[0], b[1]);
      multiply(out[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// S ← last S + (write ∘ values) rows
template <int N>
__device__ __forceinline__ void write_state(float (&state)[N / 8][4], const Values& values, const float* write, float last,
                                            const SharedRows<N>& rows) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) state[n][i] *= last;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = *reinterpret_cast<const float2*>(write + 16 * k + i / 2 * 8 + threadIdx.x % 4 * 2);
      a[i] = pack_bf16(low(values[k][i]) * f.x, high(values[k][i]) * f.y);
    }
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      uint32_t b[4];
      rows.load_b_transposed(b, 16 * k, n);
      multiply(state[2 * n], a, b[0], b[1]);
      multiply(state[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// use(element of [N, P], register)
template <int P, int N, class Use>
__device__ __forceinline__ void for_state(float (&state)[N / 8][4], const Use& use) {
  const int lane = static_cast<int>(threadIdx.x) % 32, p = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) use((8 * n + lane % 4 * 2 + i % 2) * P + p + i / 2 * 8, state[n][i]);
}

template <int P, int N>
__device__ __forceinline__ void store_state(const float (&state)[N / 8][4], const Form<bf16>& f, const Place& p, bf16* states) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    bf16* to = states + state_row<P, N>(f, p.b, p.c, p.h, row + 8 * half) + lane % 4 * 8;
#pragma unroll
    for (int g = 0; g < N / 32; ++g) {
      uint32_t pairs[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) pairs[u] = pack_bf16(state[4 * g + u][2 * half], state[4 * g + u][2 * half + 1]);
      *reinterpret_cast<uint4*>(to + 32 * g) = {pairs[0], pairs[1], pairs[2], pairs[3]};
    }
  }
}

/// out [column, token] to rows of tokens.
template <int P>
__device__ __forceinline__ void store_output(const Output& out, const SharedRows<P>& rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = 8 * n + lane % 4 * 2 + i % 2;
      const uint32_t at = rows.at(token, warp * 2 + i / 2) + static_cast<uint32_t>(lane / 4 * 2);
      asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(__bfloat16_as_ushort(__float2bfloat16_rn(out[n][i]))) : "memory");
    }
}

template <Pass kPass, int P, int N>
__global__ void __launch_bounds__(Sizes<P, N>::kThreads, 384 / Sizes<P, N>::kThreads) sweep_kernel(Form<bf16> f, Sweep s) {
  using Size = Sizes<P, N>;
  constexpr int kThreads = Size::kThreads;
  constexpr bool kForward = kPass != Pass::gradients, kMixes = kPass != Pass::states, kGradients = !kForward;
  extern __shared__ __align__(128) char shared[];
  __shared__ TokenRoom<Size::kWarps> room;
  const uint32_t base = shared_address(shared);
  const SharedRows<N> readers{base}, writers{base + Size::kKeys};
  const SharedRows<P> values{base + 2 * Size::kKeys}, others{values.base + Size::kValues}, made{others.base + Size::kValues};
  const SharedRows<kChunk> mix{made.base + Size::kValues};

  Place p = f.place(static_cast<int>(blockIdx.x), f.heads);
  p.b = static_cast<int>(blockIdx.x) / f.heads, p.h = static_cast<int>(blockIdx.x) % f.heads, p.group = p.h * f.groups / f.heads;
  const auto go_to = [&](int step) {
    p.c = kForward ? step : f.chunks - 1 - step;
    p.first = p.c * kChunk, p.size = min(kChunk, f.length - p.first);
  };
  const int64_t key_stride = int64_t{f.groups} * N, value_stride = int64_t{f.heads} * P;
  TokenDecay decay;
  const auto load_readers = [&] {
    copy_rows<kChunk, kThreads>(readers, (kForward ? f.q : f.k) + f.key_row(p, 0), key_stride, p.size);
    if constexpr (kMixes) copy_rows<kChunk, kThreads>(mix, s.scores + f.scores(p), kChunk, kChunk);
    copy_async_commit();
    if (threadIdx.x < kChunk) decay.load(f, p, static_cast<int>(threadIdx.x));
  };
  const auto load_writers = [&] {
    const int64_t at = f.value_row(p, 0);
    copy_rows<kChunk, kThreads>(writers, (kForward ? f.k : f.q) + f.key_row(p, 0), key_stride, p.size);
    copy_rows<kChunk, kThreads>(values, (kForward ? f.x : s.d_o) + at, value_stride, p.size);
    if constexpr (kPass != Pass::outputs) copy_rows<kChunk, kThreads>(others, (kForward ? s.d_o : f.x) + at, value_stride, p.size);
    copy_async_commit();
  };

  const float skip = f.skip ? f.skip[p.h] : 0.0f;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t given = int64_t{blockIdx.x} * N * P;
  float state[N / 8][4];
  for_state<P, N>(state, [&](int element, float& x) { x = s.from ? s.from[given + element] : 0.0f; });
  go_to(0);
  load_readers();
  load_writers();
  for (int step = 0; step < f.chunks; ++step) {
    go_to(step);
    copy_async_wait_but<1>();
    if (threadIdx.x < kChunk) {
      const int t = static_cast<int>(threadIdx.x);
      const float head = exp2_approximate(decay.running), tail = exp2_approximate(decay.end - decay.running);
      room.running[t] = decay.running, room.step[t] = decay.step, room.stepped[t] = decay.running - log2f(decay.step);
      room.read[t] = kForward ? head : tail;
      room.write[t] = kForward ? tail * decay.step : head;
    }
    __syncthreads();  // readers and scores are there
    if constexpr (kMixes) mix_scores<kForward, kThreads>(mix, room, skip);
    Output out;
    read_state<N>(out, state, readers);
    scale_tokens(out, room.read);
    if constexpr (kPass != Pass::outputs) store_state<P, N>(state, f, p, s.states);
    copy_async_wait();
    __syncthreads();  // writers, values, others and mix are there
    Values x, other;
    load_values(x, values);
    if constexpr (kPass != Pass::outputs) {
      load_values(other, others);
      put_token_sums(room.sums[0][warp], [&](int n, int i) { return out[n][i] * value(other, n, i); });
    }
    if constexpr (kMixes) {
      add_mixed<kForward>(out, x, mix);
      if constexpr (kGradients) {
        put_token_sums(room.sums[1][warp], [&](int n, int i) { return out[n][i] * value(other, n, i); });
        put_token_sums(room.sums[2][warp], [&](int n, int i) { return value(x, n, i) * value(other, n, i); });
        scale_tokens(out, room.step);
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) out[n][i] = fmaf(skip, value(x, n, i), out[n][i]);
      }
      store_output<P>(out, made);
    }
    __syncthreads();  // readers and mix are free
    const Place done = p;
    const bool more = step + 1 < f.chunks;
    const float last = exp2_approximate(room.running[kChunk - 1]), own_step = room.step[min(static_cast<int>(threadIdx.x), kChunk - 1)];
    if (more) {
      go_to(step + 1);
      load_readers();
    }
    write_state<N>(state, x, room.write, last, writers);
    __syncthreads();  // writers, values and others are free, made and the sums complete
    if (more) load_writers();
    if (kMixes && s.out) {
      constexpr int kPieces = P / 8, kStep = kThreads / kPieces;
      const int first = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
      bf16* to = s.out + f.value_row(done, first) + piece * 8;
#pragma unroll
      for (int i = 0; i < kChunk / kStep; ++i, to += kStep * value_stride)
        if (first + i * kStep < done.size) put_16(to, load_shared_16(made.at(first + i * kStep, piece)), s.add);
    }
    if (kPass != Pass::outputs && static_cast<int>(threadIdx.x) < done.size) {
      const auto sum = [&](int which) {
        float total = 0;
#pragma unroll
        for (int w = 0; w < Size::kWarps; ++w) total += room.sums[which][w][threadIdx.x];
        return total;
      };
      const int64_t line = f.line(done) + threadIdx.x;
      if constexpr (kPass == Pass::states) s.reads[line] = sum(0);
      if constexpr (kGradients) s.writes[line] = own_step * sum(0), s.d_step[line] = sum(1), s.d_skip[line] = sum(2);
    }
  }
  if (s.to) for_state<P, N>(state, [&](int element, float x) { s.to[given + element] = x; });
}

/// A block of four warps owns a chunk of a group.
template <int N>
__global__ void __launch_bounds__(128) scores_kernel(Form<bf16> f, bf16* scores) {
  extern __shared__ __align__(128) char shared[];
  const SharedRows<N> q{shared_address(shared)}, k{q.base + kChunk * N * 2};
  const Place p = f.place(static_cast<int>(blockIdx.x), f.groups);
  fill_pair<kChunk, 128>(q, k, f.q + f.key_row(p, 0), f.k + f.key_row(p, 0), f.groups * N,
                         [&](int row) { return row < p.size ? row : -1; });
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
    kernel<<<static_cast<unsigned>(in.x.dim(0) * in.x.dim(2)), Size::kThreads, Size::kShared, stream>>>(Form<bf16>(in), sweep);
  });
  check_launch();
}
template void launch_sweep<Pass::outputs>(Stream, const DecayForm&, const Sweep&);
template void launch_sweep<Pass::states>(Stream, const DecayForm&, const Sweep&);
template void launch_sweep<Pass::gradients>(Stream, const DecayForm&, const Sweep&);

}  // namespace saccade::cuda::decay

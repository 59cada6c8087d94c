#include "kernels/cuda/wkv/wkv_chunk.cuh"

namespace saccade::cuda {
namespace wkv5 {
namespace {

template <class C>
struct Tile {
  FloatRows<C> k, w;
  HalfRows<C> scaled, read, o;         ///< x̃, r times the decays before it, o
  Square scores;                       ///< A
  alignas(16) float total[C::kWidth];  ///< Π e^λ of the chunk
};

/// A of the thread's token (row) and the decays before it: A_ij = Σ_c r_ic k_jc Π_{j<m<i} e^λ, A_ii = Σ_c r bonus k.
template <class C>
__device__ __forceinline__ void score(Tile<C>& tile, const Eight& r, const Eight& k, const float* bonus, Eight& before) {
  const int token = C::token(), last = C::first_token() + C::kTokensOfWarp - 1;
  float own = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) before[c] = 1, own += r[c] * k[c] * bonus[c];
  own = token_sum<C>(own);
  if (C::group() == 0) {
    tile.scores.put(token, token, own);
    for (int j = token + 1; j < kTile; ++j) tile.scores.put(token, j, 0);
  }
  for (int j = last - 1; j >= 0; --j) {
    float sum = 0;
    if (j < token) {
      Eight key, decay;
      load_eight(tile.k.of(j), key);
      load_eight(tile.w.of(j), decay);
#pragma unroll
      for (int c = 0; c < 8; ++c) sum += r[c] * key[c] * before[c], before[c] *= decay[c];
    }
    sum = token_sum<C>(sum);
    if (C::group() == 0 && j < token) tile.scores.put(token, j, sum);
  }
}

/// y = R̃ S + A V for the warp's 16 columns, S from the warp's accumulators of Sᵀ.
template <class C>
__device__ __forceinline__ void outputs(const Head& head, const Tile<C>& tile, const float (&state)[C::kWidth / 8][4], int t0, bf16* y) {
  float out[2][4] = {};
  uint32_t a[4], b[4];
#pragma unroll
  for (int k = 0; k < C::kWidth / 16; ++k) {
    tile.read.rows().load_a(a, 0, k);
    const float(&low)[4] = state[2 * k], (&high)[4] = state[2 * k + 1];
    multiply(out[0], a, pack_bf16(low[0], low[1]), pack_bf16(high[0], high[1]));
    multiply(out[1], a, pack_bf16(low[2], low[3]), pack_bf16(high[2], high[3]));
  }
  tile.scores.rows().load_a(a, 0, 0);
  tile.o.rows().load_b_transposed(b, 0, C::warp());
  multiply(out[0], a, b[0], b[1]);
  multiply(out[1], a, b[2], b[3]);
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const Spot at = spot(n, i);
      if (t0 + at.row < head.length)
        *reinterpret_cast<uint32_t*>(y + head.at(t0 + at.row, 16 * C::warp() + at.column)) = pack_bf16(out[n][i], out[n][i + 1]);
    }
}

/// Sᵀ ← Sᵀ diag(total) + oᵀ x̃ in the warp's accumulators, 16 rows v.
template <class C>
__device__ __forceinline__ void update(const Tile<C>& tile, float (&state)[C::kWidth / 8][4]) {
  const int lane = C::lane();
  uint32_t a[4], b[4];
  load_matrices_transposed(a, tile.o.rows().at(lane / 16 * 8 + lane % 8, 2 * C::warp() + lane / 8 % 2));
#pragma unroll
  for (int n = 0; n < C::kWidth / 8; ++n) {
    const float2 decay = *reinterpret_cast<const float2*>(tile.total + spot(n, 0).column);
    state[n][0] *= decay.x, state[n][1] *= decay.y, state[n][2] *= decay.x, state[n][3] *= decay.y;
  }
#pragma unroll
  for (int n = 0; n < C::kWidth / 16; ++n) {
    tile.scaled.rows().load_b_transposed(b, 0, n);
    multiply(state[2 * n], a, b[0], b[1]);
    multiply(state[2 * n + 1], a, b[2], b[3]);
  }
}

/// Row c of [S | Π e^λ] where a segment begins.
template <class C>
__device__ __forceinline__ float* boundary(const StatePass& p, int64_t index, int segments, int segment, int c) {
  return p.carried + ((index * segments + segment) * C::kWidth + c) * (C::kWidth + 1);
}

enum class Wanted { ends, states, outputs };

/// Block (x, y): segment y, in the order of the pass, of head x; with Wanted::ends only what the segment behind starts from.
template <class C, Wanted kWanted>
__global__ void __launch_bounds__(C::kThreads) state_kernel(Head head, StatePass p, StatePass second, int64_t count, int segments) {
  constexpr bool kRead = kWanted == Wanted::outputs, kEnds = kWanted == Wanted::ends;
  __shared__ Tile<C> tile;
  const int64_t index = blockIdx.x % count;
  if (blockIdx.x >= count) p = second;
  head.sequence = index / head.heads, head.head = index % head.heads;
  const int chunks = (head.length + kTile - 1) / kTile, steps = (chunks + segments - 1) / segments;
  const int segment = static_cast<int>(blockIdx.y), first = segment * steps, behind = min(chunks, first + steps);
  float state[C::kWidth / 8][4], carried_decay = 1;
#pragma unroll
  for (int n = 0; n < C::kWidth / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = spot(n, i).column, v = 16 * C::warp() + spot(n, i).row;
      state[n][i] = 0;
      if (!kEnds && p.carried)
        state[n][i] = boundary<C>(p, index, segments, segment, c)[v];
      else if (segment == 0 && p.start)
        state[n][i] = p.start[head.state(c, v)];
      if (kEnds && segment == 0) boundary<C>(p, index, segments, 0, c)[v] = state[n][i];
    }
  Eight bonus = {};
  if (kRead) load_eight(p.bonus + head.parameter(C::channel()), bonus);
  const bf16* x = p.from_right ? p.r : p.k;
  uint4 next_x, next_o, next_r = {}, next_w = {};
  const auto fetch_chunk = [&](int chunk) {
    const int token = chunk * kTile + C::token();
    next_x = fetch<C>(head, x, token), next_o = fetch<C>(head, p.o, token);
    if (kRead) next_r = fetch<C>(head, p.r, token);
    if (p.decays.per_token) next_w = fetch<C>(head, p.decays.per_token, token);
  };
  fetch_chunk(p.from_right ? chunks - 1 - first : first);
  for (int step = first; step < behind; ++step) {
    const int chunk = p.from_right ? chunks - 1 - step : step, t0 = chunk * kTile;
    Eight own_x, own_r, rate, decay, factor;
    unpack(next_x, own_x);
    decays_at<C>(head, p.decays, next_w, t0 + C::token(), rate, decay);
    store_eight(decay, tile.w.own());
    if (kRead) unpack(next_r, own_r), store_eight(own_x, tile.k.own());
    tile.o.put_own(next_o);
    if (step + 1 < behind) fetch_chunk(p.from_right ? chunk - 1 : chunk + 1);
    __syncthreads();
    if (kRead) {
      score<C>(tile, own_r, own_x, bonus, factor);
#pragma unroll
      for (int c = 0; c < 8; ++c) own_r[c] *= factor[c];
      tile.read.put_own(pack(own_r));
    }
    if (p.from_right)
      decay_before<C>(tile.w, factor);
    else
      decay_after<C>(tile.w, factor);
#pragma unroll
    for (int c = 0; c < 8; ++c) own_x[c] *= factor[c], factor[c] *= decay[c];
    tile.scaled.put_own(pack(own_x));
    if (C::token() == (p.from_right ? kTile - 1 : 0)) store_eight(factor, tile.total + C::channel());
    if (kWanted == Wanted::states) {
      bf16* to = p.saved + (index * chunks + chunk) * C::kWidth * C::kWidth + 16 * C::warp() * C::kWidth;
#pragma unroll
      for (int n = 0; n < C::kWidth / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; i += 2)
          *reinterpret_cast<uint32_t*>(to + spot(n, i).row * C::kWidth + spot(n, i).column) = pack_bf16(state[n][i], state[n][i + 1]);
    }
    __syncthreads();
    if (kRead) outputs<C>(head, tile, state, t0, p.y);
    update<C>(tile, state);
    if (kEnds && threadIdx.x < C::kWidth) carried_decay *= tile.total[threadIdx.x];
    __syncthreads();
  }
  if (!kEnds && segment + 1 < segments) return;
#pragma unroll
  for (int n = 0; n < C::kWidth / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = spot(n, i).column, v = 16 * C::warp() + spot(n, i).row;
      if (kEnds)
        boundary<C>(p, index, segments, segment + 1, c)[v] = state[n][i];
      else
        p.end.put(head.state(c, v), state[n][i]);
    }
  if (kEnds && threadIdx.x < C::kWidth)
    boundary<C>(p, index, segments, segment + 1, static_cast<int>(threadIdx.x))[C::kWidth] = carried_decay;
}

/// From segment to segment S += diag(Π e^λ) S of the one before; a thread owns an element of the state.
template <class C>
__global__ void __launch_bounds__(C::kWidth) carry_kernel(StatePass p, int segments) {
  const int64_t index = blockIdx.x;
  const int c = static_cast<int>(blockIdx.y), v = static_cast<int>(threadIdx.x);
  float state = boundary<C>(p, index, segments, 1, c)[v];
  constexpr int kAhead = 8;
  for (int first = 2; first < segments; first += kAhead) {
    float own[kAhead] = {}, decay[kAhead] = {};
    const auto each = [&](auto&& use) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        if (first + i < segments) use(i, boundary<C>(p, index, segments, first + i, c));
    };
    each([&](int i, const float* row) { own[i] = row[v], decay[i] = row[C::kWidth]; });
    each([&](int i, float* row) { row[v] = state = decay[i] * state + own[i]; });
  }
}

template <class C>
void launch(Stream stream, const cpu::WkvInputs& in, const StatePass& pass, const StatePass* second) {
  const Head head{0, 0, in.shape.heads, static_cast<int>(in.shape.length), static_cast<int>(in.shape.width)};
  const int64_t count = in.shape.sequences();
  const int segments = pass.carried ? static_cast<int>(wkv_segments(in)) : 1;
  const auto walk = [&](auto kernel, int64_t heads, int of, const StatePass& first) {
    kernel<<<dim3(blocks_for(heads, 1), static_cast<unsigned>(of)), C::kThreads, 0, stream>>>(head, first, second ? *second : StatePass{},
                                                                                              count, segments);
    check_launch();
  };
  if (segments > 1) {
    const StatePass& last = second ? *second : pass;
    walk(state_kernel<C, Wanted::ends>, count, segments - 1, last);
    carry_kernel<C><<<dim3(blocks_for(count, 1), C::kWidth), C::kWidth, 0, stream>>>(last, segments);
    check_launch();
  }
  walk(pass.y ? state_kernel<C, Wanted::outputs> : state_kernel<C, Wanted::states>, second ? 2 * count : count, segments, pass);
}

}  // namespace

void run_state_pass(Stream stream, const cpu::WkvInputs& in, const StatePass& pass, const StatePass* second) {
  if (in.shape.width == 32)
    launch<Chunk<32>>(stream, in, pass, second);
  else
    launch<Chunk<64>>(stream, in, pass, second);
}

}  // namespace wkv5
}  // namespace saccade::cuda

#include "kernels/cuda/wkv/wkv_chunk_decay.cuh"

namespace saccade::cuda {
namespace wkv5 {
namespace {

struct ChunkBackward {
  const bf16 *r, *k, *v, *dy;
  Decays<bf16> decays;
  const float* bonus;
  const bf16 *states, *d_states;  ///< Sᵀ before every chunk, Dᵀ after it
  Goal<bf16> dr, dk, dv, dw;
  float *bonus_parts, *decay_parts;  ///< [B, H, chunks, N], null where not wanted
};

template <class C>
__device__ __forceinline__ void load_tile(const Head& head, const ChunkBackward& x, int64_t chunk_index, int t0, BackwardTile<C>& tile,
                                          OwnToken& own) {
  const int token = t0 + C::token();
  constexpr int64_t kState = C::kWidth * C::kWidth;
  tile.state_rows().template fill<C::kWidth, C::kThreads>(x.states,
                                                          [&](int row) { return x.states + chunk_index * kState + row * C::kWidth; });
  tile.d_state_rows().template fill<C::kWidth, C::kThreads>(x.states,
                                                            [&](int row) { return x.d_states + chunk_index * kState + row * C::kWidth; });
  copy_async_commit();
  const uint4 r = fetch<C>(head, x.r, token), k = fetch<C>(head, x.k, token), v = fetch<C>(head, x.v, token),
              dy = fetch<C>(head, x.dy, token);
  const uint4 raw = x.decays.per_token ? fetch<C>(head, x.decays.per_token, token) : uint4{};
  unpack(r, own.r), unpack(k, own.k);
  decays_at<C>(head, x.decays, raw, token, own.rate, own.decay);
  store_eight(own.r, tile.r.own()), store_eight(own.k, tile.k.own()), store_eight(own.decay, tile.w.own());
  tile.v.put_own(v), tile.dy.put_own(dy);
  copy_async_wait();
}

/// dA = dy vᵀ by the first warp; S dy and D v for the 16 channels of each.
template <class C>
__device__ __forceinline__ void multiply_states(BackwardTile<C>& tile) {
  float state[2][4] = {}, gradient[2][4] = {};
  multiply_columns<C>(state, tile.dy.rows(), tile.state_rows());
  multiply_columns<C>(gradient, tile.v.rows(), tile.d_state_rows());
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const Spot at = spot(n, i);
      *reinterpret_cast<float2*>(tile.from_state.x[at.row] + 16 * C::warp() + at.column) = make_float2(state[n][i], state[n][i + 1]);
      *reinterpret_cast<float2*>(tile.from_gradient.x[at.row] + 16 * C::warp() + at.column) =
          make_float2(gradient[n][i], gradient[n][i + 1]);
    }
  if (C::warp() > 0) return;
  float scores[2][4] = {};
#pragma unroll
  for (int k = 0; k < C::kWidth / 16; ++k) {
    uint32_t a[4], b[4];
    tile.dy.rows().load_a(a, 0, k);
    tile.v.rows().load_b(b, 0, k);
    multiply(scores[0], a, b[0], b[1]);
    multiply(scores[1], a, b[2], b[3]);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) tile.d_scores[spot(n, i).row][spot(n, i).column] = scores[n][i];
}

/// The thread's token as the one read: Aᵀ's row and dk = Σ_{i>j} dA_ij r_i Π e^λ.
template <class C>
__device__ __forceinline__ void later_tokens(BackwardTile<C>& tile, const Eight& bonus, OwnToken& own) {
  const int token = C::token();
  float sum = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) own.after[c] = 1, own.dk[c] = 0, sum += own.r[c] * own.k[c] * bonus[c];
  sum = token_sum<C>(sum);
  if (C::group() == 0) {
    tile.scores.put(token, token, sum);
    for (int i = 0; i < token; ++i) tile.scores.put(token, i, 0);
  }
  for (int i = C::first_token() + 1; i < kTile; ++i) {
    float read = 0;
    if (i > token) {
      const float d = tile.d_scores[i][token];
      Eight r, decay;
      load_eight(tile.r.of(i), r);
      load_eight(tile.w.of(i), decay);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const float carried = r[c] * own.after[c];
        own.dk[c] += d * carried, read += carried * own.k[c], own.after[c] *= decay[c];
      }
    }
    read = token_sum<C>(read);
    if (C::group() == 0 && i > token) tile.scores.put(token, i, read);
  }
  Eight scaled;
#pragma unroll
  for (int c = 0; c < 8; ++c) scaled[c] = own.k[c] * own.after[c];
  tile.scaled.put_own(pack(scaled));
}

/// The thread's token as the reader: dr = Σ_{j<i} dA_ij k_j Π e^λ.
template <class C>
__device__ __forceinline__ void earlier_tokens(const BackwardTile<C>& tile, OwnToken& own) {
#pragma unroll
  for (int c = 0; c < 8; ++c) own.before[c] = 1, own.dr[c] = 0;
  for (int j = C::first_token() + C::kTokensOfWarp - 2; j >= 0; --j) {
    if (j >= C::token()) continue;
    const float d = tile.d_scores[C::token()][j];
    Eight k, decay;
    load_eight(tile.k.of(j), k);
    load_eight(tile.w.of(j), decay);
#pragma unroll
    for (int c = 0; c < 8; ++c) own.dr[c] += d * k[c] * own.before[c], own.before[c] *= decay[c];
  }
}

/// dv = Aᵀ dy + K̃ D for the warp's 16 columns.
template <class C>
__device__ __forceinline__ void value_gradients(const Head& head, const BackwardTile<C>& tile, int t0, const Goal<bf16>& dv) {
  float out[2][4] = {};
  uint32_t a[4], b[4];
#pragma unroll
  for (int k = 0; k < C::kWidth / 16; ++k) {
    tile.scaled.rows().load_a(a, 0, k);
    tile.d_state_rows().load_b(b, 16 * C::warp(), k);
    multiply(out[0], a, b[0], b[1]);
    multiply(out[1], a, b[2], b[3]);
  }
  tile.scores.rows().load_a(a, 0, 0);
  tile.dy.rows().load_b_transposed(b, 0, C::warp());
  multiply(out[0], a, b[0], b[1]);
  multiply(out[1], a, b[2], b[3]);
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const Spot at = spot(n, i);
      if (t0 + at.row >= head.length || !dv.to) continue;
      auto* to = reinterpret_cast<__nv_bfloat162*>(dv.to + head.at(t0 + at.row, 16 * C::warp() + at.column));
      const float2 before = dv.add ? __bfloat1622float2(*to) : float2{};
      *to = __floats2bfloat162_rn(before.x + out[n][i], before.y + out[n][i + 1]);
    }
}

__device__ __forceinline__ void put_eight(const Goal<bf16>& to, int64_t element, const Eight& x) {
  if (!to.to) return;
  auto* at = reinterpret_cast<uint4*>(to.to + element);
  Eight made = {};
  if (to.add) unpack(*at, made);
#pragma unroll
  for (int c = 0; c < 8; ++c) made[c] += x[c];
  *at = pack(made);
}

/// Sums over the chunk's tokens.
template <class C>
__device__ __forceinline__ void store_parts(const FloatRows<C>& rows, int64_t chunk_index, float* parts) {
  if (!parts || threadIdx.x >= C::kWidth) return;
  float sum = 0;
  for (int t = 0; t < kTile; ++t) sum += rows.x[t][threadIdx.x];
  parts[chunk_index * C::kWidth + threadIdx.x] = sum;
}

/// A block owns a chunk.
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kWidth == 64 ? 4 : 8) chunk_backward_kernel(Head head, ChunkBackward x) {
  __shared__ BackwardTile<C> tile;
  const int chunks = (head.length + kTile - 1) / kTile, t0 = static_cast<int>(blockIdx.x) % chunks * kTile;
  const int64_t index = blockIdx.x / chunks, chunk_index = blockIdx.x;
  head.sequence = index / head.heads, head.head = index % head.heads;
  OwnToken own;
  Eight bonus;
  load_eight(x.bonus + head.parameter(C::channel()), bonus);
  load_tile<C>(head, x, chunk_index, t0, tile, own);
  __syncthreads();
  multiply_states<C>(tile);
  __syncthreads();
  later_tokens<C>(tile, bonus, own);
  earlier_tokens<C>(tile, own);
  __syncthreads();
  value_gradients<C>(head, tile, t0, x.dv);

  Eight from_state, from_gradient, dr, dk, dw, d_bonus;
  load_eight(tile.from_state.own(), from_state);
  load_eight(tile.from_gradient.own(), from_gradient);
  const float d_own = tile.d_scores[C::token()][C::token()];
#pragma unroll
  for (int c = 0; c < 8; ++c) from_state[c] *= own.before[c], from_gradient[c] *= own.after[c];
  decay_gradients<C>(tile, own, from_state, from_gradient, dw);
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    dw[c] *= own.rate[c];
    dr[c] = own.dr[c] + from_state[c] + d_own * bonus[c] * own.k[c];
    dk[c] = own.dk[c] + from_gradient[c] + d_own * bonus[c] * own.r[c];
    d_bonus[c] = d_own * own.r[c] * own.k[c];
  }
  if (t0 + C::token() < head.length) {
    const int64_t at = head.at(t0 + C::token(), C::channel());
    put_eight(x.dr, at, dr), put_eight(x.dk, at, dk), put_eight(x.dw, at, dw);
  }
  __syncthreads();
  store_eight(d_bonus, tile.from_state.own()), store_eight(dw, tile.from_gradient.own());
  __syncthreads();
  store_parts<C>(tile.from_state, chunk_index, x.bonus_parts);
  store_parts<C>(tile.from_gradient, chunk_index, x.decay_parts);
}

template <class C>
void launch(Stream stream, const cpu::WkvInputs& in, const ChunkBackward& x) {
  const Head head{0, 0, in.shape.heads, static_cast<int>(in.shape.length), static_cast<int>(in.shape.width)};
  const int64_t chunks = (in.shape.length + kTile - 1) / kTile;
  chunk_backward_kernel<C><<<blocks_for(in.shape.sequences() * chunks, 1), C::kThreads, 0, stream>>>(head, x);
  check_launch();
}

}  // namespace
}  // namespace wkv5

void wkv_chunk_backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g) {
  using namespace wkv5;
  const Decays<bf16> decays = decays_of<bf16>(in);
  const bf16 *r = pointer<bf16>(in.r), *k = pointer<bf16>(in.k), *v = pointer<bf16>(in.v), *dy = pointer_or_null<bf16>(g.dy);
  const float* bonus = pointer<float>(in.bonus);
  const StatePass forth{nullptr,
                        k,
                        v,
                        decays,
                        nullptr,
                        pointer_or_null<float>(in.start),
                        nullptr,
                        pointer<bf16>(g.starts),
                        pointer_or_null<float>(g.carried),
                        {},
                        false};
  const StatePass back{r,
                       nullptr,
                       dy,
                       decays,
                       nullptr,
                       pointer_or_null<float>(g.d_state),
                       nullptr,
                       pointer<bf16>(g.d_states),
                       pointer_or_null<float>(g.d_carried),
                       goal<float>(g.d_start),
                       true};
  run_state_pass(stream, in, forth, &back);
  const ChunkBackward x{r,
                        k,
                        v,
                        dy,
                        decays,
                        bonus,
                        pointer<bf16>(g.starts),
                        pointer<bf16>(g.d_states),
                        goal<bf16>(g.dr),
                        goal<bf16>(g.dk),
                        goal<bf16>(g.dv),
                        in.constant_decay() ? Goal<bf16>{} : goal<bf16>(g.dw_raw),
                        pointer_or_null<float>(g.bonus_parts),
                        pointer_or_null<float>(g.decay_parts)};
  if (in.shape.width == 32)
    launch<Chunk<32>>(stream, in, x);
  else
    launch<Chunk<64>>(stream, in, x);
  sum_parts(stream, in, g.bonus_parts, g.bonus);
  sum_parts(stream, in, g.decay_parts, g.dw_raw);
}

}  // namespace saccade::cuda

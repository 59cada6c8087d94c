#include "kernels/cuda/wkv/wkv.cuh"

namespace saccade::cuda {
namespace wkv5 {
namespace {

/// Rows of the state are channels of the key; a lane holds some elements of one.
template <int kPaddedWidth>
struct RowWidths : Widths<kPaddedWidth, kPaddedWidth <= 128 ? 4 : 8> {
  using Base = Widths<kPaddedWidth, kPaddedWidth <= 128 ? 4 : 8>;
  static constexpr int kThreads = kPaddedWidth * Base::kLanes < 256 ? kPaddedWidth * Base::kLanes : 256;
  static constexpr int kBlock = kThreads / Base::kLanes;  ///< rows of a block
  static constexpr int kBlocks = kPaddedWidth / kBlock;   ///< of a head
  static constexpr int kTogether = Base::kLanes < 8 ? Base::kLanes : 8;
  static __device__ int row() { return Base::warp() * Base::kSpan + Base::lane() % Base::kSpan; }
};

template <class T>
struct HeadTensors {
  const T *r, *k, *v, *dy;  ///< dy null: zeros
  Decays<T> decays;
  const float *bonus, *starts, *d_state;  ///< d_state null: zeros
  Goal<T> dr, dk, dw;
  float *bonus_parts, *decay_parts;  ///< [B, H, N], null where not wanted
};

template <class W>
struct alignas(16) RowTile {
  float v[kTile][W::kPadded], dy[kTile][W::kPadded];
  float r[kTile][W::kBlock], k[kTile][W::kBlock], w[kTile][W::kBlock];
  float dr[kTile][W::kBlock], dk[kTile][W::kBlock], dw[kTile][W::kBlock];  ///< without the bonus; of the decay e^λ
  float own[kTile];                                                        ///< v · dy
};

template <class W, class T>
__device__ __forceinline__ void load_tile(const Head& head, const HeadTensors<T>& x, int first_row, int t0, RowTile<W>& tile) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * W::kPadded; i += W::kThreads) {
    const int t = i / W::kPadded, c = i % W::kPadded;
    const bool inside = head.holds(t0 + t, c);
    tile.v[t][c] = inside ? to_float(x.v[head.at(t0 + t, c)]) : 0.0f;
    tile.dy[t][c] = inside && x.dy ? to_float(x.dy[head.at(t0 + t, c)]) : 0.0f;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kTile * W::kBlock; i += W::kThreads) {
    const int t = i / W::kBlock, c = i % W::kBlock, channel = first_row + c;
    const bool inside = head.holds(t0 + t, channel);
    tile.r[t][c] = inside ? to_float(x.r[head.at(t0 + t, channel)]) : 0.0f;
    tile.k[t][c] = inside ? to_float(x.k[head.at(t0 + t, channel)]) : 0.0f;
    tile.w[t][c] = inside ? decay_of(x.decays.raw(head, t0 + t, channel)) : 1.0f;
  }
}

template <class W>
__device__ __forceinline__ void own_terms(RowTile<W>& tile) {
  for (int t = W::warp(); t < kTile; t += W::kThreads / 32) {
    float sum = 0;
    for (int c = W::lane(); c < W::kPadded; c += 32) sum += tile.v[t][c] * tile.dy[t][c];
    sum = warp_sum(sum);
    if (W::lane() == 0) tile.own[t] = sum;
  }
}

/// states[t]: S before token t; states[0] is given.
template <class W>
__device__ __forceinline__ void recompute(const RowTile<W>& tile, float (&states)[kTile][W::kEach]) {
  const int row = W::row();
#pragma unroll
  for (int t = 0; t + 1 < kTile; ++t) {
    float v[W::kEach];
    W::load(tile.v[t], v);
    const float w = tile.w[t][row], k = tile.k[t][row];
#pragma unroll
    for (int i = 0; i < W::kEach; ++i) states[t + 1][i] = w * states[t][i] + k * v[i];
  }
}

/// With D the gradient of the state after the token: dr = S dy, dk = D v, d_decay = rowsum(D ∘ S), then D ← e^λ D + r dyᵀ.
template <class W>
__device__ __forceinline__ void reverse(RowTile<W>& tile, const float (&states)[kTile][W::kEach], float (&d)[W::kEach]) {
  const int row = W::row();
#pragma unroll
  for (int t0 = kTile - W::kTogether; t0 >= 0; t0 -= W::kTogether) {
    float dr[W::kTogether] = {}, dk[W::kTogether] = {}, dw[W::kTogether] = {};
#pragma unroll
    for (int i = W::kTogether - 1; i >= 0; --i) {
      const int t = t0 + i;
      float v[W::kEach], dy[W::kEach];
      W::load(tile.v[t], v), W::load(tile.dy[t], dy);
      const float w = tile.w[t][row], r = tile.r[t][row];
#pragma unroll
      for (int c = 0; c < W::kEach; ++c) {
        dr[i] += states[t][c] * dy[c], dk[i] += d[c] * v[c], dw[i] += d[c] * states[t][c];
        d[c] = w * d[c] + r * dy[c];
      }
    }
    lane_sums<W::kTogether, 16, W::kSpan>(dr), lane_sums<W::kTogether, 16, W::kSpan>(dk), lane_sums<W::kTogether, 16, W::kSpan>(dw);
    const int t = t0 + W::group() / (W::kLanes / W::kTogether);
    tile.dr[t][row] = dr[0], tile.dk[t][row] = dk[0], tile.dw[t][row] = dw[0];
  }
}

/// Gradients of the tile's tokens; adds to the sums over tokens that this thread keeps for its row.
template <class W, class T>
__device__ __forceinline__ void token_gradients(const Head& head, const HeadTensors<T>& x, int first_row, int t0, const RowTile<W>& tile,
                                                float& d_bonus, float& d_decay) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * W::kBlock; i += W::kThreads) {
    const int t = i / W::kBlock, c = i % W::kBlock, channel = first_row + c;
    if (!head.holds(t0 + t, channel)) continue;
    const int64_t at = head.at(t0 + t, channel);
    const float own = tile.own[t] * x.bonus[head.parameter(channel)], slope = -__expf(x.decays.raw(head, t0 + t, channel)) * tile.w[t][c];
    x.dr.put(at, tile.dr[t][c] + own * tile.k[t][c]);
    x.dk.put(at, tile.dk[t][c] + own * tile.r[t][c]);
    x.dw.put(at, tile.dw[t][c] * slope);
    d_bonus += tile.own[t] * tile.r[t][c] * tile.k[t][c];
    d_decay += tile.dw[t][c] * slope;
  }
}

template <class W, class T>
__device__ __forceinline__ void store_parts(const Head& head, const HeadTensors<T>& x, int first_row, float d_bonus, float d_decay) {
  __shared__ float bonus_sums[W::kThreads], decay_sums[W::kThreads];
  bonus_sums[threadIdx.x] = d_bonus, decay_sums[threadIdx.x] = d_decay;
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x), channel = first_row + row;
  if (row >= W::kBlock || channel >= head.width) return;
  float bonus = 0, decay = 0;
  for (int i = row; i < W::kThreads; i += W::kBlock) bonus += bonus_sums[i], decay += decay_sums[i];
  const int64_t at = (head.sequence * head.heads + head.head) * head.width + channel;
  if (x.bonus_parts) x.bonus_parts[at] = bonus;
  if (x.decay_parts) x.decay_parts[at] = decay;
}

template <class T, class W>
__global__ void __launch_bounds__(W::kThreads) rows_kernel(Head head, HeadTensors<T> x) {
  __shared__ RowTile<W> tile;
  const int64_t index = blockIdx.x / W::kBlocks;
  head.sequence = index / head.heads, head.head = index % head.heads;
  const int first_row = static_cast<int>(blockIdx.x % W::kBlocks) * W::kBlock, row = first_row + W::row();
  if (first_row >= head.width) return;
  float d[W::kEach], d_bonus = 0, d_decay = 0;
#pragma unroll
  for (int i = 0; i < W::kEach; ++i)
    d[i] = x.d_state && row < head.width && W::element(i) < head.width ? x.d_state[head.state(row, W::element(i))] : 0.0f;
  const int64_t tiles = (head.length + kTile - 1) / kTile;
  for (int64_t at = tiles; at-- > 0;) {
    const int t0 = static_cast<int>(at) * kTile;
    float states[kTile][W::kEach];
    W::load(x.starts + ((index * tiles + at) * W::kPadded + row) * W::kPadded, states[0]);
    __syncthreads();
    load_tile<W>(head, x, first_row, t0, tile);
    __syncthreads();
    own_terms<W>(tile);
    recompute<W>(tile, states);
    reverse<W>(tile, states, d);
    __syncthreads();
    token_gradients<W>(head, x, first_row, t0, tile, d_bonus, d_decay);
  }
  store_parts<W>(head, x, first_row, d_bonus, d_decay);
}

template <class T>
void backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g) {
  const Decays<T> decays = decays_of<T>(in);
  const T *r = pointer<T>(in.r), *k = pointer<T>(in.k), *v = pointer<T>(in.v), *dy = pointer_or_null<T>(g.dy);
  const float *bonus = pointer<float>(in.bonus), *d_state = pointer_or_null<float>(g.d_state);
  run_sweep<T>(stream, in, {r, k, v, decays, bonus, pointer_or_null<float>(in.start), {}, {}, pointer<float>(g.starts), false});
  run_sweep<T>(stream, in, {k, r, dy, decays, bonus, d_state, goal<T>(g.dv), goal<float>(g.d_start), nullptr, true});
  const HeadTensors<T> rows{r,
                            k,
                            v,
                            dy,
                            decays,
                            bonus,
                            pointer<float>(g.starts),
                            d_state,
                            goal<T>(g.dr),
                            goal<T>(g.dk),
                            in.constant_decay() ? Goal<T>{} : goal<T>(g.dw_raw),
                            pointer_or_null<float>(g.bonus_parts),
                            pointer_or_null<float>(g.decay_parts)};
  const Head head{0, 0, in.shape.heads, static_cast<int>(in.shape.length), static_cast<int>(in.shape.width)};
  with_padded(in.shape.width, [&](auto padded) {
    using W = RowWidths<decltype(padded)::value>;
    rows_kernel<T, W><<<blocks_for(in.shape.sequences() * W::kBlocks, 1), W::kThreads, 0, stream>>>(head, rows);
  });
  check_launch();
}

}  // namespace
}  // namespace wkv5

void wkv_backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g) {
  if (wkv_in_chunks(in)) return wkv_chunk_backward(stream, in, g);
  dispatch_cuda(in.r.dtype(), [&](auto zero) { wkv5::backward<decltype(zero)>(stream, in, g); });
  wkv5::sum_parts(stream, in, g.bonus_parts, g.bonus);
  wkv5::sum_parts(stream, in, g.decay_parts, g.dw_raw);
}

}  // namespace saccade::cuda

#pragma once
/// Backward pass through a chunk of WKV: what its tokens share, and the gradients of the decays. Device code only.
#include "kernels/cuda/wkv/wkv_chunk.cuh"

namespace saccade::cuda::wkv5 {

template <class C>
struct BackwardTile {
  FloatRows<C> r, k, w;
  FloatRows<C> from_state, from_gradient;        ///< (S dy)_c and (D v)_c of every token
  HalfRows<C> v, dy, scaled;                     ///< scaled: k times the decays after it
  Square scores;                                 ///< Aᵀ
  alignas(16) float d_scores[kTile][kTile + 4];  ///< dA
  alignas(128) bf16 state[C::kWidth * C::kWidth], d_state[C::kWidth * C::kWidth];

  __device__ SharedRows<C::kWidth> state_rows() const { return {shared_address(state)}; }
  __device__ SharedRows<C::kWidth> d_state_rows() const { return {shared_address(d_state)}; }
};

/// A thread's values of its token and channels.
struct OwnToken {
  Eight r, k, rate, decay;
  Eight dr, dk;         ///< through the other tokens of the chunk
  Eight before, after;  ///< decays of the chunk's other tokens
};

/// Part of Σ_v D ∘ S of the thread's channels, every 16th v.
template <class C>
__device__ __forceinline__ void state_products(const BackwardTile<C>& tile, Eight& sum) {
#pragma unroll
  for (int c = 0; c < 8; ++c) sum[c] = 0;
  for (int v = C::token(); v < C::kWidth; v += kTile) {
    const uint32_t piece = tile.state_rows().at(v, C::group()) - shared_address(tile.state);
    Eight s, d;
    unpack(*reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(tile.state) + piece), s);
    unpack(*reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(tile.d_state) + piece), d);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[c] += s[c] * d[c];
  }
}

/// Decays below this have their gradient summed pair by pair, not as a difference of sums.
constexpr float kStrongDecay = 1e-3f;

/// Σ_{i>t>j} dA_ij r_i k_j Π_{j<m<i} e^λ, pair by pair: what the decay of the thread's token t passes on between the others.
template <class C>
__device__ __noinline__ void passed_on(const BackwardTile<C>& tile, const Eight& own_decay, Eight& sum) {
  Eight rise;
  for (int c = 0; c < 8; ++c) sum[c] = 0, rise[c] = own_decay[c];
  for (int i = C::token() + 1; i < kTile; ++i) {
    Eight keys, fall, r, decay;
    for (int c = 0; c < 8; ++c) keys[c] = 0, fall[c] = 1;
    for (int j = C::token() - 1; j >= 0; --j) {
      Eight k, w;
      load_eight(tile.k.of(j), k);
      load_eight(tile.w.of(j), w);
      for (int c = 0; c < 8; ++c) keys[c] += tile.d_scores[i][j] * k[c] * fall[c], fall[c] *= w[c];
    }
    load_eight(tile.r.of(i), r);
    load_eight(tile.w.of(i), decay);
    for (int c = 0; c < 8; ++c) sum[c] += r[c] * rise[c] * keys[c], rise[c] *= decay[c];
  }
}

/// sum += Σ of the rows of later tokens.
template <class C>
__device__ __forceinline__ void add_later(const FloatRows<C>& rows, Eight& sum) {
  for (int t = C::first_token() + 1; t < kTile; ++t) {
    if (t <= C::token()) continue;
    Eight one;
    load_eight(rows.of(t), one);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[c] += one[c];
  }
}
template <class C>
__device__ __forceinline__ void add_earlier(const FloatRows<C>& rows, Eight& sum) {
  for (int t = 0; t < C::token(); ++t) {
    Eight one;
    load_eight(rows.of(t), one);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[c] += one[c];
  }
}
/// sum += factor Σ of all rows
template <class C>
__device__ __forceinline__ void add_all(const FloatRows<C>& rows, const Eight& factor, Eight& sum) {
  for (int t = 0; t < kTile; ++t) {
    Eight one;
    load_eight(rows.of(t), one);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[c] += factor[c] * one[c];
  }
}

/// dλ of the thread's token and channels, with dr, dk the gradients through the chunk's own tokens and dr', dk' those through the state
/// before it and after it:
///   dλ_t = (Σ_{i>t} (r_i dr_i − k_i dk_i) − k_t dk_t) + Σ_{i>t} r_i dr'_i + Σ_{j<t} k_j dk'_j + Π e^λ Σ_v D ∘ S
/// The first difference is the sum over the pairs around t. Where the decay is strong, that sum is less than the difference's rounding and
/// is summed pair by pair.
template <class C>
__device__ __forceinline__ void decay_gradients(BackwardTile<C>& tile, const OwnToken& own, const Eight& from_state,
                                                const Eight& from_gradient, Eight& d_rate) {
  Eight products, pairs, exact, row, all;
  bool strong = false;
#pragma unroll
  for (int c = 0; c < 8; ++c) strong = strong || own.decay[c] < kStrongDecay;
  if (strong) passed_on(tile, own.decay, exact);
  state_products<C>(tile, products);
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 8; ++c) row[c] = own.r[c] * own.dr[c] - own.k[c] * own.dk[c];
  store_eight(row, tile.r.own());
#pragma unroll
  for (int c = 0; c < 8; ++c) row[c] = own.r[c] * from_state[c];
  store_eight(row, tile.from_state.own());
#pragma unroll
  for (int c = 0; c < 8; ++c) row[c] = own.k[c] * from_gradient[c];
  store_eight(row, tile.k.own());
  store_eight(products, tile.w.own());
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    all[c] = own.before[c] * own.decay[c] * own.after[c];
    pairs[c] = -own.k[c] * own.dk[c], d_rate[c] = 0;
  }
  add_later(tile.r, pairs);
  add_later(tile.from_state, d_rate);
  add_earlier(tile.k, d_rate);
  add_all(tile.w, all, d_rate);
#pragma unroll
  for (int c = 0; c < 8; ++c) d_rate[c] += own.decay[c] < kStrongDecay ? exact[c] : pairs[c];
}

}  // namespace saccade::cuda::wkv5

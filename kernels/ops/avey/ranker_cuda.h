#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/avey/ranker.h"

namespace saccade::cuda {

/// Shapes of a ranking; see avey::rank.
struct RankShape {
  int64_t B, T, D, N, S, k;
  bool causal, weighting, first_reference;

  constexpr int64_t count(int64_t i) const { return T - i * S < S ? T - i * S : S; }
  constexpr int64_t query(int64_t i) const { return causal ? i - 1 : i; }
  constexpr int64_t candidates(int64_t i) const { return i < k ? i : k; }
  /// Splits whose products with all keys before them exist at a time.
  constexpr int64_t block_splits() const {
    const int64_t fits = (int64_t{1} << 25) / (B * T * S);
    return fits < 1 ? 1 : fits > N ? N : fits;
  }
  /// f32 elements of the block of products.
  constexpr int64_t product_elements() const {
    const int64_t rows = block_splits() * S < T ? block_splits() * S : T;
    return B * rows * T;
  }
};

/// x f32 or bf16 [B, T, D]; norm f32 [B, T]; products f32 [product_elements]; maxsim f32 [B, N, N], chosen i32 and weights f32
/// [B, N, k]; winners i32 [B, N, k, S] or empty: for every query token the token of the chosen split nearest to it.
/// Cosines come from exact products of x with fp32 accumulation: nothing is rounded before the choice.
void rank(int device, const RankShape& shape, const Tensor& x, const Tensor& norm, const Tensor& products, const avey::Ranked& out,
          const Tensor& winners);

/// d_scores f32 [B, N, k] is scratch.
void rank_backward(Stream stream, const RankShape& shape, const Tensor& x, const Tensor& norm, const avey::Ranked& ranked,
                   const Tensor& winners, const Tensor& d_weights, const Tensor& d_scores, const Tensor& dx, bool add);

}  // namespace saccade::cuda

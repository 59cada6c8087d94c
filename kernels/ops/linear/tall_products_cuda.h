#pragma once
#include <span>

#include "kernels/engine/tape.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade::cuda {

/// to [m, n] (+)= aᵀ b, summed over many rows. a bf16 [rows, m], b bf16 [rows, n], to f32 with a row stride.
struct TallProduct {
  Tensor a, b;
  Matrix to;
  bool add = false;
  GradTarget sums = {};  ///< f32 [m] (+)= Σ rows of a, if it is wanted
};
/// to [n] (+)= Σ_p parts[p, n], all f32.
struct TallSum {
  Tensor parts;
  GradTarget to;
};
constexpr int kMostTallProducts = 3, kMostTallSums = 4;

namespace tall {
constexpr int kElements = 128 * 128, kMostTiles = 32, kUnits = 264;  ///< per tile; for all results; two per multiprocessor
constexpr int kRowSums = 2 * 128;                                    ///< per unit of work, in two parts
}  // namespace tall
/// Floats of workspace for results of `elements` in all; 0 where the products have enough tiles.
inline int64_t tall_scratch(int64_t elements) {
  return elements > 0 && elements <= tall::kMostTiles * tall::kElements ? int64_t{tall::kUnits} * (tall::kElements + tall::kRowSums) : 0;
}
/// All products in one launch, with their rows split into parts that run in parallel and are added in order (split-K): for results of a few
/// tiles of 128 x 128, where one product does not fill the GPU. bf16 with widths divisible by 8 on Hopper; else returns false and does
/// nothing. `sums` are computed in the launch that adds the products' parts.
bool tall_products(int device, std::span<const TallProduct> products, std::span<const TallSum> sums, const Tensor& scratch);

}  // namespace saccade::cuda

#pragma once
#include <span>

#include "kernels/cuda/gemm.h"
#include "kernels/tape.h"
#include "kernels/tensor.h"

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
constexpr int kElements = 128 * 128, kMostTiles = 32, kUnits = 264;  ///< of a tile; of all results; two for each multiprocessor
constexpr int kRowSums = 2 * 128;                                    ///< of a unit: in two parts
}  // namespace tall
/// Floats of scratch for results of `elements` in all; none where the products have enough tiles of their own.
inline int64_t tall_scratch(int64_t elements) {
  return elements > 0 && elements <= tall::kMostTiles * tall::kElements ? int64_t{tall::kUnits} * (tall::kElements + tall::kRowSums) : 0;
}
/// All products in one launch, their rows cut into parts that run side by side and are added in order: for results of a few tiles of
/// 128 x 128, where a product at a time does not fill the GPU. bf16 with widths divisible by 8 on Hopper; false: nothing was done.
/// `sums` are made by the way, in the launch that adds the products' parts.
bool tall_products(int device, std::span<const TallProduct> products, std::span<const TallSum> sums, const Tensor& scratch);

}  // namespace saccade::cuda

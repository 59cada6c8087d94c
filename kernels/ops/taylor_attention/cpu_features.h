#pragma once
#include <cstdint>

namespace saccade::cpu {

/// φ(x) = [1, x d^{−1/4}, x_i² / √(2d), x_i x_j / √d for i < j], row i of the triangle after row i − 1. Rows of x are `x_row` apart,
/// rows of features dense.
void features(const float* x, int64_t x_row, int64_t rows, int64_t d, float* phi);
void features(const double* x, int64_t x_row, int64_t rows, int64_t d, double* phi);

/// dx += φ'(x)ᵀ dφ
void add_feature_gradients(const float* x, int64_t x_row, int64_t rows, int64_t d, const float* d_phi, float* dx);
void add_feature_gradients(const double* x, int64_t x_row, int64_t rows, int64_t d, const double* d_phi, double* dx);

/// A tile of scores s [rows, n], rows n apart; row r sees keys 0 … first_visible + r. p = 1 + s + s²/2, 0 where masked; row sums.
void taylor_rows(const float* s, int64_t rows, int64_t n, int64_t first_visible, float* p, float* sums);
void taylor_rows(const double* s, int64_t rows, int64_t n, int64_t first_visible, double* p, double* sums);

/// dp ← (dp + d_sum of the row) (1 + s) · scale, 0 where masked: the gradient of q · k.
void taylor_slopes(const float* s, int64_t rows, int64_t n, int64_t first_visible, const float* d_sums, float scale, float* dp);
void taylor_slopes(const double* s, int64_t rows, int64_t n, int64_t first_visible, const double* d_sums, double scale, double* dp);

}  // namespace saccade::cpu

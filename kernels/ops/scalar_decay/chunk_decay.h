#pragma once
#include <cstdint>

namespace saccade::cpu {

/// Shared steps of the chunk forms of decaying recurrences. G_i (i < size) is the running sum of log decays inside a chunk, the token's own
/// included; a null G is no decay. Exponents are differences ≤ 0 taken before exp, so nothing overflows (segsum of arXiv:2405.21060,
/// listing 1). Matrices are row-major; each one's row stride follows it.

/// to_i = e^{G_i} from_i
void scale_by_head(const float* G, int64_t size, const float* from, int64_t from_row, int64_t width, float* to, int64_t to_row);
void scale_by_head(const double* G, int64_t size, const double* from, int64_t from_row, int64_t width, double* to, int64_t to_row);

/// to_i = e^{G_last − G_i} from_i
void scale_by_tail(const float* G, int64_t size, const float* from, int64_t from_row, int64_t width, float* to, int64_t to_row);
void scale_by_tail(const double* G, int64_t size, const double* from, int64_t from_row, int64_t width, double* to, int64_t to_row);

/// out_ij = e^{G_i − G_j} scores_ij for j ≤ i, 0 for j > i
void decay_scores(const float* G, int64_t size, const float* scores, int64_t row, float* out, int64_t out_row);
void decay_scores(const double* G, int64_t size, const double* scores, int64_t row, double* out, int64_t out_row);

/// out_ij = e^{G_i − G_j} for j ≤ i, 0 for j > i
void decay_matrix(const float* G, int64_t size, float* out, int64_t row);
void decay_matrix(const double* G, int64_t size, double* out, int64_t row);

/// to += the lower triangle of from, [size, size]
void add_lower(const float* from, int64_t from_row, int64_t size, float* to, int64_t to_row);
void add_lower(const double* from, int64_t from_row, int64_t size, double* to, int64_t to_row);

/// With F = a ∘ b below the diagonal: dG_i = Σ_j F_ij − Σ_j F_ji
void decay_gradient(const float* a, const float* b, int64_t row, int64_t size, float* dG);
void decay_gradient(const double* a, const double* b, int64_t row, int64_t size, double* dG);

/// to += factor · from, [rows, width]
void add_scaled(float factor, const float* from, int64_t from_row, int64_t rows, int64_t width, float* to, int64_t to_row);
void add_scaled(double factor, const double* from, int64_t from_row, int64_t rows, int64_t width, double* to, int64_t to_row);

/// ⟨a, b⟩ of n elements
float dot_rows(const float* a, const float* b, int64_t n);
double dot_rows(const double* a, const double* b, int64_t n);

}  // namespace saccade::cpu

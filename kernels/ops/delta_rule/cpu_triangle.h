#pragma once
#include <cstdint>

namespace saccade::cpu {

/// Steps of the delta rule's chunk form (delta_rule/chunks.h). Matrices [size, size] have rows of `row` elements; rows of values are dense,
/// `width` elements.

/// m ∘= gamma for j ≤ i; the rest becomes 0. `below`: for j < i.
void multiply_lower(const float* gamma, int64_t size, int64_t row, float* m);
void multiply_lower(const double* gamma, int64_t size, int64_t row, double* m);
void multiply_below(const float* gamma, int64_t size, int64_t row, float* m);
void multiply_below(const double* gamma, int64_t size, int64_t row, double* m);

/// r = v − r
void subtract_from(const float* v, int64_t v_row, int64_t size, int64_t width, float* r);
void subtract_from(const double* v, int64_t v_row, int64_t size, int64_t width, double* r);

/// Overwrites R with the X of (I + diag(β) N) X = β ∘ R, by forward substitution: X_i = β_i (R_i − Σ_{j<i} N_ij X_j)
void solve_forward(const float* beta, const float* n, int64_t size, int64_t row, int64_t width, float* r);
void solve_forward(const double* beta, const double* n, int64_t size, int64_t row, int64_t width, double* r);

/// Overwrites D with the Y of (I + diag(β) N)ᵀ Y = D, by backward substitution: Y_i = D_i − Σ_{j>i} β_j N_ji Y_j
void solve_backward(const float* beta, const float* n, int64_t size, int64_t row, int64_t width, float* d);
void solve_backward(const double* beta, const double* n, int64_t size, int64_t row, int64_t width, double* d);

/// From dP, dA, P (with its scale) and N: dG_i = Σ_j F_ij − Σ_j F_ji for F = dP ∘ P + dA ∘ (β ∘ N) below the diagonal,
/// dn = (β ∘ dA) ∘ Γ below the diagonal, and dP ← scale dP ∘ Γ on and below it; zeros elsewhere.
void pair_gradients(const float* beta, const float* gamma, float scale, int64_t size, int64_t row, float* dp, const float* da,
                    const float* p, const float* n, float* dn, float* dG);
void pair_gradients(const double* beta, const double* gamma, double scale, int64_t size, int64_t row, double* dp, const double* da,
                    const double* p, const double* n, double* dn, double* dG);

}  // namespace saccade::cpu

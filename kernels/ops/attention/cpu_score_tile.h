#pragma once
#include <cstdint>

namespace saccade::cpu {

/// A tile of scaled products q·k that becomes probabilities in place. Row r is the query at position first_query + r, or
/// query[r] when rows were gathered; column c is the key at position first_key + c.
template <class T>
struct ScoreTile {
  T* s;
  int64_t rows, keys;
  int64_t ld;  ///< elements between rows
  int64_t first_query = 0, first_key = 0;
  const int32_t* query = nullptr;
  int64_t window = 0;  ///< visible: t − window < j <= t; 0: all j <= t
  T slope = 0;         ///< of ALiBi: s_tj −= slope (t − j)

  int64_t position(int64_t r) const { return query ? query[r] : first_query + r; }
  /// Index of row r in arrays per query: the position for gathered rows, else the row.
  int64_t slot(int64_t r) const { return query ? query[r] : r; }
  /// Columns [begin, end) that row r sees.
  int64_t begin(int64_t r) const {
    const int64_t first = window > 0 ? position(r) - window + 1 - first_key : 0;
    return first < 0 ? 0 : first;
  }
  int64_t end(int64_t r) const {
    const int64_t last = position(r) + 1 - first_key;
    return last < keys ? (last > 0 ? last : 0) : keys;
  }
};

/// Running softmax over key tiles, per query slot: max m, Σ exp(s − m), and where wanted Σ exp(s − m)(s − m) and the first
/// key with the greatest score. Start with m = −inf.
template <class T>
struct SoftmaxState {
  T* max;
  T* sum;
  T* weighted = nullptr;
  int32_t* best = nullptr;
};

/// Scores become exp(s − m), zero where masked; correction[r] is the factor for earlier results of row r (0 when there are none).
void softmax_step(const ScoreTile<float>& tile, const SoftmaxState<float>& state, float* correction);
void softmax_step(const ScoreTile<double>& tile, const SoftmaxState<double>& state, double* correction);

/// Adds a tile to a running max and Σ exp(s − max) per row; the tile itself only gets ALiBi's bias.
void mass_step(const ScoreTile<float>& tile, float* max, float* sum);
void mass_step(const ScoreTile<double>& tile, double* max, double* sum);

/// out[r · ld] = max[r] + ln sum[r]; −inf where max is.
void log_of_mass(const float* max, const float* sum, int64_t rows, float* out, int64_t ld);
void log_of_mass(const double* max, const double* sum, int64_t rows, double* out, int64_t ld);

/// o[slot] = o[slot] · correction + product[r]; rows with correction 0 are overwritten. product is [rows, width].
void merge_rows(const ScoreTile<float>& tile, const float* correction, const float* product, int64_t width, float* o, int64_t stride);
void merge_rows(const ScoreTile<double>& tile, const double* correction, const double* product, int64_t width, double* o, int64_t stride);

/// Normalises rows [0, n): o /= sum, lse = m + ln sum, entropy = ln sum − weighted / sum (null: not wanted).
void finish_rows(const SoftmaxState<float>& state, int64_t n, int64_t width, float* o, int64_t stride, float* lse, float* entropy);
void finish_rows(const SoftmaxState<double>& state, int64_t n, int64_t width, double* o, int64_t stride, double* lse, double* entropy);

/// Scores become p = exp(s − lse), and dp (same layout) becomes dS · scale with dS = p (dp − delta), delta = d per query slot.
void gradient_step(const ScoreTile<float>& tile, const float* lse, const float* d, float scale, float* dp);
void gradient_step(const ScoreTile<double>& tile, const double* lse, const double* d, double scale, double* dp);

/// Scores become p = exp(s − lse), zero where masked.
void probability_step(const ScoreTile<float>& tile, const float* lse);
void probability_step(const ScoreTile<double>& tile, const double* lse);

/// Scores of whole rows become probabilities, zero where masked.
void softmax_rows(const ScoreTile<float>& tile);
void softmax_rows(const ScoreTile<double>& tile);

/// out[r] = x[r] · y[r] over `width` elements; rows of x and y lie `stride` apart.
void dot_rows(const float* x, const float* y, int64_t rows, int64_t width, int64_t stride, float* out);
void dot_rows(const double* x, const double* y, int64_t rows, int64_t width, int64_t stride, double* out);

}  // namespace saccade::cpu

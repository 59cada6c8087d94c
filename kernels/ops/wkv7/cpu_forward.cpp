#include "kernels/engine/parallel.h"
#include "kernels/ops/wkv/cpu_pieces.h"
#include "kernels/ops/wkv7/wkv7_cpu.h"

namespace saccade::cpu {
namespace {

/// A piece of one head: rows of `padded` elements; w is e^{log_w}.
template <class T>
struct HeadChunk {
  int64_t width, padded, count;
  T *r, *w, *k, *v, *a, *b, *y;
  T* state;    ///< [N, padded]: rows are channels of the key
  T* removed;  ///< [padded] S_{t−1}ᵀ a_t
};

/// One token for two vectors of columns: S_c ← w_c S_c + b_c removed + k_c v, y = Σ_c r_c S_c, and S_tᵀ a_{t+1} along the way.
template <class T>
SACCADE_INLINE void advance(const HeadChunk<T>& p, int64_t t, int64_t column) {
  constexpr int64_t n = kLanes<T>;
  const int64_t at = t * p.padded;
  const T *r = p.r + at, *w = p.w + at, *k = p.k + at, *b = p.b + at, *next = p.a + (t + 1 < p.count ? at + p.padded : at);
  Lanes<T> v0, v1, x0, x1, s0, s1, y0 = {}, y1 = {}, n0 = {}, n1 = {};
  load(p.v + at + column, v0), load(p.v + at + column + n, v1);
  load(p.removed + column, x0), load(p.removed + column + n, x1);
  for (int64_t c = 0; c < p.width; ++c) {
    T* row = p.state + c * p.padded + column;
    load(row, s0), load(row + n, s1);
    s0 = w[c] * s0 + b[c] * x0 + k[c] * v0, s1 = w[c] * s1 + b[c] * x1 + k[c] * v1;
    y0 += r[c] * s0, y1 += r[c] * s1;
    n0 += next[c] * s0, n1 += next[c] * s1;
    std::memcpy(row, &s0, sizeof(s0)), std::memcpy(row + n, &s1, sizeof(s1));
  }
  std::memcpy(p.y + at + column, &y0, sizeof(y0)), std::memcpy(p.y + at + column + n, &y1, sizeof(y1));
  std::memcpy(p.removed + column, &n0, sizeof(n0)), std::memcpy(p.removed + column + n, &n1, sizeof(n1));
}

template <class T>
SACCADE_INLINE void run_piece_impl(const HeadChunk<T>& p) {
  for (int64_t i = 0; i < p.count * p.padded; ++i) p.w[i] = fast_exp(p.w[i]);
  for (int64_t column = 0; column < p.width; column += 2 * kLanes<T>) {
    for (int64_t i = 0; i < 2 * kLanes<T>; ++i) p.removed[column + i] = 0;
    for (int64_t c = 0; c < p.width; ++c)
      for (int64_t i = 0; i < 2 * kLanes<T>; ++i) p.removed[column + i] += p.a[c] * p.state[c * p.padded + column + i];
    for (int64_t t = 0; t < p.count; ++t) advance(p, t, column);
  }
}

/// a_j = p · k_j, p ← w_j ∘ p + a_j (b_j · p)   for j = t … 0
template <class T>
SACCADE_INLINE void read_back_impl(const HeadChunk<T>& rows, int64_t t, T* p, T* weights) {
  for (int64_t j = t; j >= 0; --j) {
    const int64_t at = j * rows.padded;
    weights[j] = dot(p, rows.k + at, rows.padded);
    const T along = dot(p, rows.b + at, rows.padded);
    for (int64_t c = 0; c < rows.padded; ++c) p[c] = rows.w[at + c] * p[c] + rows.a[at + c] * along;
  }
}

template <class T>
SACCADE_INLINE void exponentials_impl(T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = fast_exp(x[i]);
}

#define ENTRY_POINTS(T)                                                                                                       \
  SACCADE_SIMD void run_piece(const HeadChunk<T>& p) { run_piece_impl(p); }                                                   \
  SACCADE_SIMD void read_back(const HeadChunk<T>& rows, int64_t t, T* p, T* weights) { read_back_impl(rows, t, p, weights); } \
  SACCADE_SIMD void exponentials(T* x, int64_t n) { exponentials_impl(x, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// Rows of one head, tokens first … first+count−1.
template <class T>
void take(const Wkv7Inputs& in, int64_t sequence, int64_t h, int64_t first, HeadChunk<T>& p) {
  const auto rows = [&](const Tensor& x, T* to) {
    if (x) copy_in(in.shape, in.shape.rows<T>(x, sequence, h), first, p.count, p.padded, to);
  };
  rows(in.r, p.r), rows(in.log_w, p.w), rows(in.k, p.k), rows(in.v, p.v), rows(in.a, p.a), rows(in.b, p.b);
}

template <class T>
void run_head(const Wkv7Inputs& in, const Tensor& y, const Tensor& state, int64_t sequence, int64_t h) {
  const HeadShape& shape = in.shape;
  const int64_t padded = padded_width<T>(shape.width), rows = kPiece * padded;
  Carve<T> memory{scratch<T, 23>(7 * rows + (padded + 1) * padded)};
  HeadChunk<T> p{};
  p.width = shape.width, p.padded = padded;
  for (T** part : {&p.r, &p.w, &p.k, &p.v, &p.a, &p.b, &p.y}) *part = memory.take(rows);
  p.state = memory.take(padded * padded), p.removed = memory.take(padded);
  copy_state_in(head_state<T>(shape, in.start, sequence, h), shape.width, padded, false, p.state);
  for (int64_t first = 0; first < shape.length; first += kPiece) {
    p.count = std::min(kPiece, shape.length - first);
    take(in, sequence, h, first, p);
    run_piece(p);
    copy_out(shape, p.y, first, p.count, padded, false, shape.rows<T>(y, sequence, h));
  }
  copy_state_out(p.state, shape.width, padded, false, false, head_state<T>(shape, state, sequence, h));
}

}  // namespace

template <class T>
void wkv7_forward(const Wkv7Inputs& in, const Tensor& y, const Tensor& state) {
  parallel_for(in.shape.sequences(), [&](int64_t s) { run_head<T>(in, y, state, s / in.shape.heads, s % in.shape.heads); });
}

template <class T>
void wkv7_weights(const Wkv7Inputs& in, const Sequences& sequences, const Tensor& weights) {
  const int64_t length = in.shape.length, padded = padded_width<T>(in.shape.width), heads = in.shape.heads;
  parallel_for(sequences.count * heads, [&](int64_t map) {
    Carve<T> memory{scratch<T, 24>((5 * length + 1) * padded)};
    HeadChunk<T> rows{};
    rows.width = in.shape.width, rows.padded = padded, rows.count = length;
    for (T** part : {&rows.r, &rows.w, &rows.k, &rows.a, &rows.b}) *part = memory.take(length * padded);
    T* p = memory.take(padded);
    take(in, sequences.first + map / heads, map % heads, 0, rows);
    exponentials(rows.w, length * padded);
    for (int64_t t = 0; t < length; ++t) {
      T* batch_head = weights.data<T>() + (map * length + t) * length;
      std::fill_n(batch_head, length, T(0));
      std::copy_n(rows.r + t * padded, padded, p);
      read_back(rows, t, p, batch_head);
    }
  });
}

template void wkv7_forward<float>(const Wkv7Inputs&, const Tensor&, const Tensor&);
template void wkv7_forward<double>(const Wkv7Inputs&, const Tensor&, const Tensor&);
template void wkv7_weights<float>(const Wkv7Inputs&, const Sequences&, const Tensor&);
template void wkv7_weights<double>(const Wkv7Inputs&, const Sequences&, const Tensor&);

}  // namespace saccade::cpu

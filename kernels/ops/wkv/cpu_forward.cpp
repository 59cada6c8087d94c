#include "kernels/engine/parallel.h"
#include "kernels/ops/wkv/cpu_decay.h"
#include "kernels/ops/wkv/cpu_pieces.h"
#include "kernels/ops/wkv/wkv_cpu.h"

namespace saccade::cpu {
namespace {

/// A piece of one head: rows of `padded` elements; w moves on by w_step a token (0: constant decay).
template <class T>
struct HeadChunk {
  int64_t width, padded, count;
  const T *r, *k, *v, *w, *bonus;
  int64_t w_step;
  T *state, *y;  ///< state [N, padded]: rows are channels of the key
};

/// y_t += Σ_c r_tc S_c,  S_c ← w_tc S_c + k_tc v_t   for two vectors of columns and kTokens tokens at a time; S stays in registers.
template <class T, int kTokens>
SACCADE_INLINE void advance(const HeadChunk<T>& p, int64_t t, int64_t column) {
  constexpr int64_t n = kLanes<T>;
  Lanes<T> y[kTokens][2], v[kTokens][2], s0, s1;
  for (int i = 0; i < kTokens; ++i) {
    const int64_t at = (t + i) * p.padded + column;
    load(p.v + at, v[i][0]), load(p.v + at + n, v[i][1]);
    load(p.y + at, y[i][0]), load(p.y + at + n, y[i][1]);
  }
  const T *r = p.r + t * p.padded, *k = p.k + t * p.padded, *w = p.w + t * p.w_step;
  for (int64_t c = 0; c < p.width; ++c) {
    T* row = p.state + c * p.padded + column;
    load(row, s0), load(row + n, s1);
    for (int i = 0; i < kTokens; ++i) {
      const T rc = r[i * p.padded + c], kc = k[i * p.padded + c], wc = w[i * p.w_step + c];
      y[i][0] += rc * s0, y[i][1] += rc * s1;
      s0 = wc * s0 + kc * v[i][0], s1 = wc * s1 + kc * v[i][1];
    }
    std::memcpy(row, &s0, sizeof(s0)), std::memcpy(row + n, &s1, sizeof(s1));
  }
  for (int i = 0; i < kTokens; ++i) {
    T* out = p.y + (t + i) * p.padded + column;
    std::memcpy(out, &y[i][0], sizeof(s0)), std::memcpy(out + n, &y[i][1], sizeof(s1));
  }
}

template <class T>
SACCADE_INLINE void run_piece_impl(const HeadChunk<T>& p) {
  for (int64_t t = 0; t < p.count; ++t) {
    const T *r = p.r + t * p.padded, *k = p.k + t * p.padded;
    const T own = lane_sum<T>(p.width, [&](int64_t c) SACCADE_INLINE_LAMBDA { return r[c] * p.bonus[c] * k[c]; });
    for (int64_t i = 0; i < p.padded; ++i) p.y[t * p.padded + i] = own * p.v[t * p.padded + i];
  }
  for (int64_t column = 0; column < p.width; column += 2 * kLanes<T>) {
    int64_t t = 0;
    for (; t + 2 <= p.count; t += 2) advance<T, 2>(p, t, column);
    for (; t < p.count; ++t) advance<T, 1>(p, t, column);
  }
}

/// a_j = p · k_j, p ← w_j ∘ p   for j = t−1 … 0
template <class T>
SACCADE_INLINE void read_back_impl(T* p, const T* k, const T* w, int64_t t, int64_t padded, T* a) {
  for (int64_t j = t - 1; j >= 0; --j) {
    Lanes<T> sum = {}, part, key, decay;
    for (int64_t c = 0; c < padded; c += kLanes<T>) {
      load(p + c, part), load(k + j * padded + c, key), load(w + j * padded + c, decay);
      sum += part * key;
      part *= decay;
      std::memcpy(p + c, &part, sizeof(part));
    }
    a[j] = sum_lanes<T>(sum);
  }
}

SACCADE_SIMD void read_back(float* p, const float* k, const float* w, int64_t t, int64_t padded, float* a) {
  read_back_impl(p, k, w, t, padded, a);
}
SACCADE_SIMD void read_back(double* p, const double* k, const double* w, int64_t t, int64_t padded, double* a) {
  read_back_impl(p, k, w, t, padded, a);
}
SACCADE_SIMD void run_piece(const HeadChunk<float>& p) { run_piece_impl(p); }
SACCADE_SIMD void run_piece(const HeadChunk<double>& p) { run_piece_impl(p); }
SACCADE_SIMD void decays(const float* w_raw, float* decay, int64_t n) { decay_of(w_raw, decay, n); }
SACCADE_SIMD void decays(const double* w_raw, double* decay, int64_t n) { decay_of(w_raw, decay, n); }

template <class T>
void run_head(const WkvInputs& in, const Tensor& y, const Tensor& state, int64_t b, int64_t h) {
  const HeadShape& shape = in.shape;
  const int64_t n = shape.width, padded = padded_width<T>(n), rows = kPiece * padded;
  Carve<T> memory{scratch<T, 20>(5 * rows + padded * padded)};
  T *r = memory.take(rows), *k = memory.take(rows), *v = memory.take(rows), *w = memory.take(rows), *out = memory.take(rows);
  HeadChunk<T> p{n, padded, 0, r, k, v, w, in.bonus.data<T>() + h * n, in.constant_decay() ? 0 : padded, memory.take(padded * padded), out};
  copy_state_in(head_state<T>(shape, in.start, b, h), n, padded, false, p.state);
  if (in.constant_decay()) decays(in.w_raw.data<T>() + h * n, w, n);
  for (int64_t first = 0; first < shape.length; first += kPiece) {
    p.count = std::min(kPiece, shape.length - first);
    copy_in(shape, shape.rows<T>(in.r, b, h), first, p.count, padded, r);
    copy_in(shape, shape.rows<T>(in.k, b, h), first, p.count, padded, k);
    copy_in(shape, shape.rows<T>(in.v, b, h), first, p.count, padded, v);
    for (int64_t t = 0; !in.constant_decay() && t < p.count; ++t)
      decays(shape.rows<T>(in.w_raw, b, h) + (first + t) * shape.stride(), w + t * padded, n);
    run_piece(p);
    copy_out(shape, out, first, p.count, padded, false, shape.rows<T>(y, b, h));
  }
  copy_state_out(p.state, n, padded, false, false, head_state<T>(shape, state, b, h));
}

}  // namespace

void wkv_decay(const float* w_raw, float* decay, int64_t n) { decays(w_raw, decay, n); }
void wkv_decay(const double* w_raw, double* decay, int64_t n) { decays(w_raw, decay, n); }

template <class T>
void wkv_forward(const WkvInputs& in, const Tensor& y, const Tensor& state) {
  parallel_for(in.shape.sequences(), [&](int64_t s) { run_head<T>(in, y, state, s / in.shape.heads, s % in.shape.heads); });
}

/// From the query backward: with p = r_t, a_tj = p · k_j, then p ← e^{λ_j} ∘ p.
template <class T>
void wkv_weights(const WkvInputs& in, const Sequences& sequences, const Tensor& weights) {
  const HeadShape& shape = in.shape;
  const int64_t n = shape.width, padded = padded_width<T>(n), length = shape.length;
  parallel_for(sequences.count * shape.heads, [&](int64_t map) {
    const int64_t b = sequences.first + map / shape.heads, h = map % shape.heads;
    Carve<T> memory{scratch<T, 22>(3 * length * padded + padded)};
    T *r = memory.take(length * padded), *k = memory.take(length * padded), *w = memory.take(length * padded), *p = memory.take(padded);
    copy_in(shape, shape.rows<T>(in.r, b, h), 0, length, padded, r);
    copy_in(shape, shape.rows<T>(in.k, b, h), 0, length, padded, k);
    std::fill_n(w, length * padded, T(0));
    for (int64_t t = 0; t < length; ++t)
      decays(in.constant_decay() ? in.w_raw.data<T>() + h * n : shape.rows<T>(in.w_raw, b, h) + t * shape.stride(), w + t * padded, n);
    const T* bonus = in.bonus.data<T>() + h * n;
    for (int64_t t = 0; t < length; ++t) {
      T* a = weights.data<T>() + (map * length + t) * length;
      std::fill_n(a, length, T(0));
      for (int64_t c = 0; c < n; ++c) a[t] += r[t * padded + c] * bonus[c] * k[t * padded + c];
      std::copy_n(r + t * padded, padded, p);
      read_back(p, k, w, t, padded, a);
    }
  });
}

template void wkv_forward<float>(const WkvInputs&, const Tensor&, const Tensor&);
template void wkv_forward<double>(const WkvInputs&, const Tensor&, const Tensor&);
template void wkv_weights<float>(const WkvInputs&, const Sequences&, const Tensor&);
template void wkv_weights<double>(const WkvInputs&, const Sequences&, const Tensor&);

}  // namespace saccade::cpu

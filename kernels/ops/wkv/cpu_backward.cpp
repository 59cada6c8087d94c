#include "kernels/engine/parallel.h"
#include "kernels/ops/wkv/cpu_decay.h"
#include "kernels/ops/wkv/cpu_pieces.h"
#include "kernels/ops/wkv/wkv_cpu.h"

namespace saccade::cpu {
namespace {

/// One head, its state transposed: rows are columns v, vectors run over the channels c of the key, so that only dv sums across
/// a vector. Rows of `padded` elements; w moves on by w_step a token (0: constant decay).
template <class T>
struct HeadChunk {
  int64_t width, padded, count;
  T *r, *k, *v, *w, *dy;  ///< inputs of the piece
  int64_t w_step;
  const T* bonus;
  T *dr, *dk, *dv, *dw;  ///< gradients of the piece; dw of the decay e^λ
  T* d_bonus;            ///< sum over the sequence
  T* d_state;            ///< [padded, padded] of the state after the piece, then of the one before it
  T* inside;             ///< [kPiece + 1, kColumns, padded] states of some columns at every token
};

/// S_t = e^{λ_t} S_{t−1} + v_t k_tᵀ over a piece: rows `first` … of the state before it, in place.
template <class T>
SACCADE_INLINE void advance_state_impl(const HeadChunk<T>& p, T* state) {
  constexpr int64_t n = kLanes<T>;
  for (int64_t i = 0; i < p.width; ++i)
    for (int64_t c = 0; c < p.padded; c += n) {
      Lanes<T> s, w, k;
      load(state + i * p.padded + c, s);
      for (int64_t t = 0; t < p.count; ++t) {
        load(p.w + t * p.w_step + c, w), load(p.k + t * p.padded + c, k);
        s = w * s + k * p.v[t * p.padded + i];
      }
      std::memcpy(state + i * p.padded + c, &s, sizeof(s));
    }
}

/// The states of kColumns rows before every token of the piece.
template <class T>
SACCADE_INLINE void states_inside(const HeadChunk<T>& p, const T* start, int64_t first) {
  constexpr int64_t n = kLanes<T>;
  for (int64_t c = 0; c < p.padded; c += n) {
    Lanes<T> s[kColumns], w, k;
    for (int i = 0; i < kColumns; ++i) load(start + (first + i) * p.padded + c, s[i]);
    for (int64_t t = 0; t < p.count; ++t) {
      T* to = p.inside + t * kColumns * p.padded + c;
      load(p.w + t * p.w_step + c, w), load(p.k + t * p.padded + c, k);
      for (int i = 0; i < kColumns; ++i) {
        std::memcpy(to + i * p.padded, &s[i], sizeof(s[i]));
        s[i] = w * s[i] + k * p.v[t * p.padded + first + i];
      }
    }
  }
}

/// With D the gradient of S_t: dr += S_{t−1} dy, dk += D v, d_decay += Σ_v D ∘ S_{t−1}, dv = Dᵀ k, then D ← e^λ D + r dyᵀ.
template <class T>
SACCADE_INLINE void token_back(const HeadChunk<T>& p, int64_t t, int64_t first) {
  constexpr int64_t n = kLanes<T>;
  const T *v = p.v + t * p.padded + first, *dy = p.dy + t * p.padded + first;
  Lanes<T> dv[kColumns] = {};
  for (int64_t c = 0; c < p.padded; c += n) {
    const int64_t at = t * p.padded + c;
    const T* before = p.inside + t * kColumns * p.padded + c;
    T* grad = p.d_state + first * p.padded + c;
    Lanes<T> r, k, w, dr, dk, dw, s, d;
    load(p.r + at, r), load(p.k + at, k), load(p.w + t * p.w_step + c, w);
    load(p.dr + at, dr), load(p.dk + at, dk), load(p.dw + at, dw);
    for (int i = 0; i < kColumns; ++i) {
      load(before + i * p.padded, s), load(grad + i * p.padded, d);
      dr += s * dy[i], dk += d * v[i], dw += d * s, dv[i] += d * k;
      d = w * d + r * dy[i];
      std::memcpy(grad + i * p.padded, &d, sizeof(d));
    }
    std::memcpy(p.dr + at, &dr, sizeof(dr)), std::memcpy(p.dk + at, &dk, sizeof(dk)), std::memcpy(p.dw + at, &dw, sizeof(dw));
  }
  for (int i = 0; i < kColumns; ++i) p.dv[t * p.padded + first + i] = sum_lanes<T>(dv[i]);
}

/// What the bonus adds: y_t += (Σ_c r bonus k) v.
template <class T>
SACCADE_INLINE void bonus_back(const HeadChunk<T>& p, int64_t t) {
  const int64_t at = t * p.padded;
  const T *r = p.r + at, *k = p.k + at, *v = p.v + at, *dy = p.dy + at;
  const T own = lane_sum<T>(p.width, [&](int64_t c) SACCADE_INLINE_LAMBDA { return r[c] * p.bonus[c] * k[c]; });
  const T e = dot(v, dy, p.padded);
  for (int64_t c = 0; c < p.width; ++c) {
    p.dv[at + c] += own * dy[c];
    p.dr[at + c] += e * p.bonus[c] * k[c];
    p.dk[at + c] += e * p.bonus[c] * r[c];
    p.d_bonus[c] += e * r[c] * k[c];
  }
}

template <class T>
SACCADE_INLINE void piece_back_impl(const HeadChunk<T>& p, const T* start) {
  std::fill_n(p.dr, p.count * p.padded, T(0)), std::fill_n(p.dk, p.count * p.padded, T(0)), std::fill_n(p.dw, p.count * p.padded, T(0));
  for (int64_t first = 0; first < p.width; first += kColumns) {
    states_inside(p, start, first);
    for (int64_t t = p.count - 1; t >= 0; --t) token_back(p, t, first);
  }
  for (int64_t t = p.count - 1; t >= 0; --t) bonus_back(p, t);
}

#define ENTRY_POINTS(T)                                                                              \
  SACCADE_SIMD void advance_state(const HeadChunk<T>& p, T* state) { advance_state_impl(p, state); } \
  SACCADE_SIMD void piece_back(const HeadChunk<T>& p, const T* start) { piece_back_impl(p, start); } \
  SACCADE_SIMD void decay_back(const T* w_raw, const T* decay, T* d, int64_t n) { decay_gradient(w_raw, decay, d, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// One head of one sequence, its memory and its way through the pieces.
template <class T>
class Head {
 public:
  Head(const WkvInputs& in, const WkvGradients& g, int64_t b, int64_t h) : in_(in), g_(g), b_(b), h_(h) {
    const HeadShape& shape = in.shape;
    const int64_t n = shape.width, padded = padded_width<T>(n), rows = kPiece * padded, square = padded * padded;
    pieces_ = (shape.length + kPiece - 1) / kPiece;
    Carve<T> memory{scratch<T, 21>(9 * rows + 2 * padded + (kColumns * kPiece + pieces_ * padded + padded) * padded)};
    HeadChunk<T>& p = piece_;
    p.width = n, p.padded = padded, p.w_step = in.constant_decay() ? 0 : padded, p.bonus = in.bonus.data<T>() + h * n;
    for (T** part : {&p.r, &p.k, &p.v, &p.w, &p.dy, &p.dr, &p.dk, &p.dv, &p.dw}) *part = memory.take(rows);
    p.d_bonus = memory.take(padded), d_decay_ = memory.take(padded);
    p.d_state = memory.take(square), p.inside = memory.take(kPiece * kColumns * padded), starts_ = memory.take(pieces_ * square);
    std::fill_n(p.w, rows, T(0)), std::fill_n(p.d_bonus, padded, T(0)), std::fill_n(d_decay_, padded, T(0));
    if (in.constant_decay()) wkv_decay(in.w_raw.data<T>() + h * n, p.w, n);
  }

  void run() {
    const HeadShape& shape = in_.shape;
    const int64_t square = piece_.padded * piece_.padded;
    copy_state_in(head_state<T>(shape, in_.start, b_, h_), shape.width, piece_.padded, true, starts_);
    for (int64_t i = 0; i + 1 < pieces_; ++i) {
      take(i);
      std::copy_n(starts_ + i * square, square, starts_ + (i + 1) * square);
      advance_state(piece_, starts_ + (i + 1) * square);
    }
    copy_state_in(head_state<T>(shape, g_.d_state, b_, h_), shape.width, piece_.padded, true, piece_.d_state);
    for (int64_t i = pieces_ - 1; i >= 0; --i) {
      take(i);
      take_output_gradient(i);
      piece_back(piece_, starts_ + i * square);
      give(i);
    }
    finish();
  }

 private:
  void take(int64_t i) {
    const HeadShape& shape = in_.shape;
    const int64_t first = i * kPiece;
    HeadChunk<T>& p = piece_;
    p.count = std::min(kPiece, shape.length - first);
    copy_in(shape, shape.rows<T>(in_.r, b_, h_), first, p.count, p.padded, p.r);
    copy_in(shape, shape.rows<T>(in_.k, b_, h_), first, p.count, p.padded, p.k);
    copy_in(shape, shape.rows<T>(in_.v, b_, h_), first, p.count, p.padded, p.v);
    for (int64_t t = 0; !in_.constant_decay() && t < p.count; ++t) wkv_decay(w_raw(first + t), p.w + t * p.padded, p.width);
  }

  void take_output_gradient(int64_t i) {
    if (g_.dy)
      copy_in(in_.shape, in_.shape.rows<T>(g_.dy, b_, h_), i * kPiece, piece_.count, piece_.padded, piece_.dy);
    else
      std::fill_n(piece_.dy, piece_.count * piece_.padded, T(0));
  }

  void give(int64_t i) {
    const HeadChunk<T>& p = piece_;
    const int64_t first = i * kPiece;
    const auto out = [&](const GradTarget& to, const T* rows) {
      if (to) copy_out(in_.shape, rows, first, p.count, p.padded, to.add, in_.shape.rows<T>(to.tensor, b_, h_));
    };
    for (int64_t t = p.count - 1; t >= 0; --t) {
      if (in_.constant_decay())
        for (int64_t c = 0; c < p.width; ++c) d_decay_[c] += p.dw[t * p.padded + c];
      else
        decay_back(w_raw(first + t), p.w + t * p.padded, p.dw + t * p.padded, p.width);
    }
    out(g_.dr, p.dr), out(g_.dk, p.dk), out(g_.dv, p.dv);
    if (!in_.constant_decay()) out(g_.dw_raw, p.dw);
  }

  void finish() {
    const int64_t n = in_.shape.width, line = (b_ * in_.shape.heads + h_) * n;
    if (g_.d_start)
      copy_state_out(piece_.d_state, n, piece_.padded, true, g_.d_start.add, head_state<T>(in_.shape, g_.d_start.tensor, b_, h_));
    if (g_.bonus_parts) std::copy_n(piece_.d_bonus, n, g_.bonus_parts.template data<T>() + line);
    if (!g_.decay_parts) return;
    decay_back(in_.w_raw.template data<T>() + h_ * n, piece_.w, d_decay_, n);
    std::copy_n(d_decay_, n, g_.decay_parts.template data<T>() + line);
  }

  const T* w_raw(int64_t t) const { return in_.shape.rows<T>(in_.w_raw, b_, h_) + t * in_.shape.stride(); }

  const WkvInputs& in_;
  const WkvGradients& g_;
  int64_t b_, h_, pieces_ = 0;
  HeadChunk<T> piece_{};
  T *d_decay_ = nullptr, *starts_ = nullptr;
};

}  // namespace

template <class T>
void wkv_backward(const WkvInputs& in, const WkvGradients& g) {
  parallel_for(in.shape.sequences(), [&](int64_t s) { Head<T>(in, g, s / in.shape.heads, s % in.shape.heads).run(); });
}

template void wkv_backward<float>(const WkvInputs&, const WkvGradients&);
template void wkv_backward<double>(const WkvInputs&, const WkvGradients&);

}  // namespace saccade::cpu

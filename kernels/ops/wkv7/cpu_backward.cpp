#include "kernels/engine/parallel.h"
#include "kernels/ops/wkv/cpu_pieces.h"
#include "kernels/ops/wkv7/wkv7_cpu.h"

namespace saccade::cpu {
namespace {

/// One head, its state transposed: rows are columns v, vectors run over the channels c of the key. Rows of `padded` elements.
template <class T>
struct HeadChunk {
  int64_t width, padded, count;
  T *r, *w, *k, *v, *a, *b, *dy;   ///< inputs of the piece; w is e^{log_w}
  T *dr, *dw, *dk, *dv, *da, *db;  ///< gradients of the piece; dw of log_w
  T* d_state;                      ///< [padded, padded] of the state after the piece, then of the one before it
  T* inside;                       ///< [kPiece + 1, kColumns, padded] states of some columns before every token and after the last
  T* removed;                      ///< [kPiece, kColumns] S_{t−1}ᵀ a_t of these columns
};

/// S_t = w S_{t−1} + (S_{t−1}ᵀ a) b + v k of kColumns rows over the piece, from `state`; keeps every state and S_{t−1}ᵀ a_t.
template <class T>
SACCADE_INLINE void states_inside(const HeadChunk<T>& p, const T* state, int64_t first) {
  constexpr int64_t n = kLanes<T>;
  std::copy(state + first * p.padded, state + (first + kColumns) * p.padded, p.inside);
  for (int64_t t = 0; t < p.count; ++t) {
    const T *from = p.inside + t * kColumns * p.padded, *v = p.v + t * p.padded + first;
    T *to = p.inside + (t + 1) * kColumns * p.padded, *removed = p.removed + t * kColumns;
    Lanes<T> sum[kColumns] = {}, s, w, k, a, b;
    for (int64_t c = 0; c < p.padded; c += n) {
      load(p.a + t * p.padded + c, a);
      for (int i = 0; i < kColumns; ++i) {
        load(from + i * p.padded + c, s);
        sum[i] += s * a;
      }
    }
    for (int i = 0; i < kColumns; ++i) removed[i] = sum_lanes<T>(sum[i]);
    for (int64_t c = 0; c < p.padded; c += n) {
      load(p.w + t * p.padded + c, w), load(p.k + t * p.padded + c, k), load(p.b + t * p.padded + c, b);
      for (int i = 0; i < kColumns; ++i) {
        load(from + i * p.padded + c, s);
        s = w * s + b * removed[i] + k * v[i];
        std::memcpy(to + i * p.padded + c, &s, sizeof(s));
      }
    }
  }
}

/// With D the gradient of S_t, all columns v of it:
///   D += r dyᵀ, dr += S_t dy, dk += D v, dv = Dᵀ k, x = S_{t−1}ᵀ a: dx = Dᵀ b, db += D x, da += S_{t−1} dx,
///   d_log_w += w Σ_v D ∘ S_{t−1}, then D ← w D + a dxᵀ
template <class T>
SACCADE_INLINE void token_back(const HeadChunk<T>& p, int64_t t, int64_t first) {
  constexpr int64_t n = kLanes<T>;
  const T *v = p.v + t * p.padded + first, *dy = p.dy + t * p.padded + first, *x = p.removed + t * kColumns;
  const T *before = p.inside + t * kColumns * p.padded, *after = before + kColumns * p.padded;
  T* grad = p.d_state + first * p.padded;
  Lanes<T> dv[kColumns] = {}, along[kColumns] = {}, r, w, k, a, b, s, d;
  T dx[kColumns];
  for (int64_t c = 0; c < p.padded; c += n) {
    const int64_t at = t * p.padded + c;
    load(p.r + at, r), load(p.k + at, k), load(p.b + at, b);
    for (int i = 0; i < kColumns; ++i) {
      load(grad + i * p.padded + c, d);
      d += r * dy[i];
      dv[i] += d * k, along[i] += d * b;
      std::memcpy(grad + i * p.padded + c, &d, sizeof(d));
    }
  }
  for (int i = 0; i < kColumns; ++i) p.dv[t * p.padded + first + i] = sum_lanes<T>(dv[i]), dx[i] = sum_lanes<T>(along[i]);
  for (int64_t c = 0; c < p.padded; c += n) {
    const int64_t at = t * p.padded + c;
    Lanes<T> dr, dw, dk, da, db, later;
    load(p.dr + at, dr), load(p.dw + at, dw), load(p.dk + at, dk), load(p.da + at, da), load(p.db + at, db);
    load(p.w + at, w), load(p.a + at, a);
    for (int i = 0; i < kColumns; ++i) {
      load(grad + i * p.padded + c, d), load(before + i * p.padded + c, s), load(after + i * p.padded + c, later);
      dr += later * dy[i], dk += d * v[i], db += d * x[i], da += s * dx[i], dw += d * s * w;
      d = w * d + a * dx[i];
      std::memcpy(grad + i * p.padded + c, &d, sizeof(d));
    }
    std::memcpy(p.dr + at, &dr, sizeof(dr)), std::memcpy(p.dw + at, &dw, sizeof(dw)), std::memcpy(p.dk + at, &dk, sizeof(dk));
    std::memcpy(p.da + at, &da, sizeof(da)), std::memcpy(p.db + at, &db, sizeof(db));
  }
}

template <class T>
SACCADE_INLINE void advance_state_impl(const HeadChunk<T>& p, T* state) {
  for (int64_t first = 0; first < p.width; first += kColumns) {
    states_inside(p, state, first);
    std::copy_n(p.inside + p.count * kColumns * p.padded, kColumns * p.padded, state + first * p.padded);
  }
}

template <class T>
SACCADE_INLINE void piece_back_impl(const HeadChunk<T>& p, const T* start) {
  for (T* sum : {p.dr, p.dw, p.dk, p.da, p.db}) std::fill_n(sum, p.count * p.padded, T(0));
  for (int64_t first = 0; first < p.width; first += kColumns) {
    states_inside(p, start, first);
    for (int64_t t = p.count - 1; t >= 0; --t) token_back(p, t, first);
  }
}

template <class T>
SACCADE_INLINE void exponentials_impl(T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = fast_exp(x[i]);
}

#define ENTRY_POINTS(T)                                                                              \
  SACCADE_SIMD void advance_state(const HeadChunk<T>& p, T* state) { advance_state_impl(p, state); } \
  SACCADE_SIMD void piece_back(const HeadChunk<T>& p, const T* start) { piece_back_impl(p, start); } \
  SACCADE_SIMD void exponentials(T* x, int64_t n) { exponentials_impl(x, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// One head of one sequence, its memory and its way through the pieces.
template <class T>
class Head {
 public:
  Head(const Wkv7Inputs& in, const Wkv7Gradients& g, int64_t sequence, int64_t h) : in_(in), g_(g), sequence_(sequence), h_(h) {
    const int64_t padded = padded_width<T>(in.shape.width), rows = kPiece * padded, square = padded * padded;
    pieces_ = (in.shape.length + kPiece - 1) / kPiece;
    Carve<T> memory{scratch<T, 25>(13 * rows + (pieces_ + 1) * square + (kPiece + 1) * kColumns * padded + kPiece * kColumns)};
    HeadChunk<T>& p = piece_;
    p.width = in.shape.width, p.padded = padded;
    for (T** part : {&p.r, &p.w, &p.k, &p.v, &p.a, &p.b, &p.dy, &p.dr, &p.dw, &p.dk, &p.dv, &p.da, &p.db}) *part = memory.take(rows);
    p.d_state = memory.take(square), starts_ = memory.take(pieces_ * square);
    p.inside = memory.take((kPiece + 1) * kColumns * padded), p.removed = memory.take(kPiece * kColumns);
  }

  void run() {
    const HeadShape& shape = in_.shape;
    HeadChunk<T>& p = piece_;
    const int64_t square = p.padded * p.padded;
    copy_state_in(head_state<T>(shape, in_.start, sequence_, h_), shape.width, p.padded, true, starts_);
    for (int64_t i = 0; i + 1 < pieces_; ++i) {
      take(i);
      std::copy_n(starts_ + i * square, square, starts_ + (i + 1) * square);
      advance_state(p, starts_ + (i + 1) * square);
    }
    copy_state_in(head_state<T>(shape, g_.d_state, sequence_, h_), shape.width, p.padded, true, p.d_state);
    for (int64_t i = pieces_ - 1; i >= 0; --i) {
      take(i);
      rows_in(in_.r, i, p.r);
      if (g_.dy)
        rows_in(g_.dy, i, p.dy);
      else
        std::fill_n(p.dy, p.count * p.padded, T(0));
      piece_back(p, starts_ + i * square);
      give(i);
    }
    if (g_.d_start)
      copy_state_out(p.d_state, shape.width, p.padded, true, g_.d_start.add, head_state<T>(shape, g_.d_start.tensor, sequence_, h_));
  }

 private:
  void rows_in(const Tensor& x, int64_t i, T* to) {
    copy_in(in_.shape, in_.shape.rows<T>(x, sequence_, h_), i * kPiece, piece_.count, piece_.padded, to);
  }
  /// What the states of a piece are made of.
  void take(int64_t i) {
    HeadChunk<T>& p = piece_;
    p.count = std::min(kPiece, in_.shape.length - i * kPiece);
    rows_in(in_.log_w, i, p.w), rows_in(in_.k, i, p.k), rows_in(in_.v, i, p.v), rows_in(in_.a, i, p.a), rows_in(in_.b, i, p.b);
    exponentials(p.w, p.count * p.padded);
  }
  void give(int64_t i) {
    const HeadChunk<T>& p = piece_;
    const auto out = [&](const GradTarget& to, const T* rows) {
      if (to) copy_out(in_.shape, rows, i * kPiece, p.count, p.padded, to.add, in_.shape.rows<T>(to.tensor, sequence_, h_));
    };
    out(g_.dr, p.dr), out(g_.d_log_w, p.dw), out(g_.dk, p.dk), out(g_.dv, p.dv), out(g_.da, p.da), out(g_.db, p.db);
  }

  const Wkv7Inputs& in_;
  const Wkv7Gradients& g_;
  int64_t sequence_, h_, pieces_ = 0;
  HeadChunk<T> piece_{};
  T* starts_ = nullptr;
};

}  // namespace

template <class T>
void wkv7_backward(const Wkv7Inputs& in, const Wkv7Gradients& g) {
  parallel_for(in.shape.sequences(), [&](int64_t s) { Head<T>(in, g, s / in.shape.heads, s % in.shape.heads).run(); });
}

template void wkv7_backward<float>(const Wkv7Inputs&, const Wkv7Gradients&);
template void wkv7_backward<double>(const Wkv7Inputs&, const Wkv7Gradients&);

}  // namespace saccade::cpu

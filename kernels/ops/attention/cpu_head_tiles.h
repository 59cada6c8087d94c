#pragma once
#include "kernels/ops/attention/cpu_score_tile.h"
#include "kernels/ops/attention/head_shape.h"

namespace saccade::cpu {

/// Keys and values of one head, and how they are scored.
template <class T>
struct HeadKeys {
  HeadKeys(const HeadShape& shape, const ScoreOptions& options, const Tensor& k_all, const Tensor& v_all, int64_t b, int64_t h)
      : k(shape.rows<T>(k_all, b, h)),
        v(shape.rows<T>(v_all, b, h)),
        stride(shape.stride()),
        width(shape.width),
        scale(static_cast<T>(options.scale)),
        slope(static_cast<T>(alibi_slope(options, h, shape.heads))),
        window(options.window) {}

  const T *k, *v;
  int64_t stride, width;
  T scale, slope;
  int64_t window;
};

/// A block of at most kTileQueries queries: rows of q `stride` apart, at positions first, first + 1, … or position[0], ….
template <class T>
struct QueryRows {
  const T* q;
  int64_t stride, rows;
  int64_t first = 0;
  const int32_t* position = nullptr;
  const T* d_o = nullptr;  ///< rows as q's; backward only
};

/// Many queries against few keys: a product packs the keys' side, and only tiles of 64 x 64 at the diagonal are half masked.
constexpr int64_t kTileQueries = 256, kTileKeys = 64;

/// Attention from the queries to keys [begin, end), tile after tile: updates the running softmax and the unnormalised o, both per slot.
/// Every query must see one of the keys or have an o already.
template <class T>
void absorb_keys(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t end, const SoftmaxState<T>& state, T* o);

/// P and dS · scale of queries × keys [begin, begin + keys), at most kTileKeys, in a workspace of this thread, rows kTileKeys
/// apart. lse and delta are per slot.
template <class T>
struct GradientTile {
  const T *p, *ds;
  int64_t rows, keys;
};
template <class T>
GradientTile<T> gradient_tile(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t keys, const T* lse,
                              const T* delta);

/// dk (+)= dSᵀ q and dv (+)= Pᵀ dO for the tile's keys, rows `stride` apart; null: not wanted.
template <class T>
void key_gradients(const HeadKeys<T>& head, const QueryRows<T>& queries, const GradientTile<T>& tile, T* dk, bool add_k, T* dv, bool add_v,
                   int64_t stride);

/// dq (+)= dS k, rows `stride` apart, for the tile whose first key is `begin`.
template <class T>
void query_gradients(const HeadKeys<T>& head, const GradientTile<T>& tile, int64_t begin, T* dq, int64_t stride, bool add);

}  // namespace saccade::cpu

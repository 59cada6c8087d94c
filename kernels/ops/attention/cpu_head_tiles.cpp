#include "kernels/ops/attention/cpu_head_tiles.h"

#include "kernels/cpu/gemm.h"

namespace saccade::cpu {
namespace {

template <class T>
ScoreTile<T> score_tile(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t keys, T* s) {
  gemm_serial<T>(false, true, queries.rows, keys, head.width, head.scale, queries.q, queries.stride, head.k + begin * head.stride,
                 head.stride, false, s, kTileKeys);
  ScoreTile<T> tile{s, queries.rows, keys, kTileKeys, queries.first, begin};
  tile.query = queries.position;
  tile.window = head.window;
  tile.slope = head.slope;
  return tile;
}

/// The rows that see any of keys [begin, begin + keys).
template <class T>
struct SeeingRows {
  SeeingRows(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t keys) {
    if (queries.position) {
      last = queries.rows;
      return;
    }
    first = std::max<int64_t>(0, begin - queries.first);
    last = head.window > 0 ? std::min(queries.rows, begin + keys - 1 + head.window - queries.first) : queries.rows;
  }
  int64_t first = 0, last;
};

}  // namespace

template <class T>
void absorb_keys(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t end, const SoftmaxState<T>& state, T* o) {
  T *s = scratch<T, 0>(kTileQueries * kTileKeys), *product = scratch<T, 1>(kTileQueries * head.width);
  T correction[kTileQueries];
  for (int64_t key = begin; key < end; key += kTileKeys) {
    const int64_t keys = std::min(kTileKeys, end - key);
    const SeeingRows<T> seeing(head, queries, key, keys);
    if (seeing.first >= seeing.last) continue;
    QueryRows<T> rows = queries;
    rows.q += seeing.first * queries.stride;
    rows.rows = seeing.last - seeing.first;
    rows.first += seeing.first;
    const ScoreTile<T> tile = score_tile(head, rows, key, keys, s);
    const auto shifted = [&](auto* values) { return values ? values + seeing.first : nullptr; };
    softmax_step(tile, {shifted(state.max), shifted(state.sum), shifted(state.weighted), shifted(state.best)}, correction);
    gemm_serial<T>(false, false, rows.rows, head.width, keys, T(1), s, kTileKeys, head.v + key * head.stride, head.stride, false, product,
                   head.width);
    merge_rows(tile, correction, product, head.width, o + seeing.first * head.stride, head.stride);
  }
}

template <class T>
GradientTile<T> gradient_tile(const HeadKeys<T>& head, const QueryRows<T>& queries, int64_t begin, int64_t keys, const T* lse,
                              const T* delta) {
  T *p = scratch<T, 2>(kTileQueries * kTileKeys), *ds = scratch<T, 3>(kTileQueries * kTileKeys);
  const ScoreTile<T> tile = score_tile(head, queries, begin, keys, p);
  gemm_serial<T>(false, true, queries.rows, keys, head.width, T(1), queries.d_o, queries.stride, head.v + begin * head.stride, head.stride,
                 false, ds, kTileKeys);
  gradient_step(tile, lse, delta, head.scale, ds);
  return {p, ds, queries.rows, keys};
}

template <class T>
void key_gradients(const HeadKeys<T>& head, const QueryRows<T>& queries, const GradientTile<T>& tile, T* dk, bool add_k, T* dv, bool add_v,
                   int64_t stride) {
  if (dv)
    gemm_serial<T>(true, false, tile.keys, head.width, tile.rows, T(1), tile.p, kTileKeys, queries.d_o, queries.stride, add_v, dv, stride);
  if (dk)
    gemm_serial<T>(true, false, tile.keys, head.width, tile.rows, T(1), tile.ds, kTileKeys, queries.q, queries.stride, add_k, dk, stride);
}

template <class T>
void query_gradients(const HeadKeys<T>& head, const GradientTile<T>& tile, int64_t begin, T* dq, int64_t stride, bool add) {
  gemm_serial<T>(false, false, tile.rows, head.width, tile.keys, T(1), tile.ds, kTileKeys, head.k + begin * head.stride, head.stride, add,
                 dq, stride);
}

#define SACCADE_INSTANTIATE(T)                                                                                                  \
  template void absorb_keys<T>(const HeadKeys<T>&, const QueryRows<T>&, int64_t, int64_t, const SoftmaxState<T>&, T*);          \
  template GradientTile<T> gradient_tile<T>(const HeadKeys<T>&, const QueryRows<T>&, int64_t, int64_t, const T*, const T*);     \
  template void key_gradients<T>(const HeadKeys<T>&, const QueryRows<T>&, const GradientTile<T>&, T*, bool, T*, bool, int64_t); \
  template void query_gradients<T>(const HeadKeys<T>&, const GradientTile<T>&, int64_t, T*, int64_t, bool);
SACCADE_INSTANTIATE(float)
SACCADE_INSTANTIATE(double)
#undef SACCADE_INSTANTIATE

}  // namespace saccade::cpu

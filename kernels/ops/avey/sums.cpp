#include "kernels/ops/avey/sums.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/parallel.h"

namespace saccade::avey {
namespace {

constexpr int64_t kTile = 256, kWantedTasks = 16, kLeastRows = 512, kSumRows = 512;

int64_t cut(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

template <class T>
SACCADE_INLINE void add_rows_impl(T* sum, const T* rows, int64_t count, int64_t columns) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t c = 0; c < columns; ++c) sum[c] += rows[r * columns + c];
}
SACCADE_SIMD void add_rows(float* sum, const float* rows, int64_t count, int64_t columns) { add_rows_impl(sum, rows, count, columns); }
SACCADE_SIMD void add_rows(double* sum, const double* rows, int64_t count, int64_t columns) { add_rows_impl(sum, rows, count, columns); }

}  // namespace

WeightGradient::WeightGradient(Tape& tape, int64_t rows, int64_t out, int64_t in, DType dtype) : rows_(rows), out_(out), in_(in) {
  const int64_t tiles = std::max<int64_t>(1, cut(out, kTile) * cut(in, kTile));
  cuts_ = std::max<int64_t>(1, std::min(cut(kWantedTasks, tiles), rows / kLeastRows));
  if (cuts_ > 1) parts_ = tape.empty({cuts_, out, in}, dtype);
}

template <class T>
void WeightGradient::operator()(const T* d_y, const T* x, T* d_weight, int64_t stride, bool add) const {
  const int64_t across = cut(in_, kTile), tiles = cut(out_, kTile) * across, piece = cut(rows_, cuts_);
  T* parts = cuts_ > 1 ? parts_.data<T>() : nullptr;
  parallel_for(tiles * cuts_, [&](int64_t task) {
    const int64_t tile = task % tiles, part = task / tiles, o = tile / across * kTile, i = tile % across * kTile;
    const int64_t first = std::min(part * piece, rows_), count = std::min(piece, rows_ - first);
    T* to = parts ? parts + (part * out_ + o) * in_ + i : d_weight + o * stride + i;
    cpu::gemm_serial<T>(true, false, std::min(kTile, out_ - o), std::min(kTile, in_ - i), count, 1, d_y + first * out_ + o, out_,
                        x + first * in_ + i, in_, parts ? false : add, to, parts ? in_ : stride);
  });
  if (!parts) return;
  parallel_ranges(out_, 16, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      T* to = d_weight + o * stride;
      if (!add) std::fill(to, to + in_, T(0));
      for (int64_t part = 0; part < cuts_; ++part) add_rows(to, parts + (part * out_ + o) * in_, 1, in_);
    }
  });
}

template <class T>
void column_sums(const T* d_y, int64_t rows, int64_t columns, T* d_bias, bool add) {
  const int64_t pieces = cut(rows, kSumRows);
  std::vector<T> sums(static_cast<size_t>(pieces * columns), T(0));
  parallel_for(pieces, [&](int64_t p) {
    add_rows(sums.data() + p * columns, d_y + p * kSumRows * columns, std::min(kSumRows, rows - p * kSumRows), columns);
  });
  if (!add) std::fill(d_bias, d_bias + columns, T(0));
  add_rows(d_bias, sums.data(), pieces, columns);
}

template void WeightGradient::operator()<float>(const float*, const float*, float*, int64_t, bool) const;
template void WeightGradient::operator()<double>(const double*, const double*, double*, int64_t, bool) const;
template void column_sums<float>(const float*, int64_t, int64_t, float*, bool);
template void column_sums<double>(const double*, int64_t, int64_t, double*, bool);

}  // namespace saccade::avey

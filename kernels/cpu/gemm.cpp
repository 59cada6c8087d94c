#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/cpu/gemm_tile.h"
#include "kernels/engine/parallel.h"

namespace saccade::cpu {
namespace {

constexpr int64_t kDepth = 512;     ///< of a block of B: a strip of A that deep stays in the first-level cache
constexpr int64_t kColumns = 2048;  ///< of a block of B: with kDepth 4 MiB of float, and no more whatever n is
constexpr int64_t kTranspose = 16;  ///< rows that GemmKernels::transpose takes

/// Memory of a thread for packed operands; grows, never shrinks.
template <class T>
class PackBuffer {
 public:
  T* at_least(int64_t size) {
    if (size > size_) {
      data_.reset(static_cast<T*>(std::aligned_alloc(64, static_cast<size_t>((size * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64))));
      if (!data_) throw std::bad_alloc();
      size_ = size;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

template <class T>
struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  bool add;
  T* c;
  int64_t ldc;
  const GemmKernels<T>& kernels = gemm_kernels<T>();
};

/// The part of B that is packed at a time: rows p … p+depth, columns j … j+width.
struct Block {
  int64_t p, depth, j, width;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Panel of `panel_columns` columns of op(B): for each p its columns side by side, zeros behind the last.
template <class T>
void pack_panel(const Product<T>& x, const Block& block, int64_t panel, T* out) {
  const int64_t columns = x.kernels.columns, first = panel * columns, width = std::min(columns, block.width - first);
  if (!x.transpose_b) {
    const T* in = x.b + block.p * x.ldb + block.j + first;
    for (int64_t p = 0; p < block.depth; ++p, in += x.ldb, out += columns) {
      std::copy(in, in + width, out);
      std::fill(out + width, out + columns, T(0));
    }
    return;
  }
  const T* in = x.b + (block.j + first) * x.ldb + block.p;
  int64_t column = 0;
  for (; column + kTranspose <= width; column += kTranspose)
    x.kernels.transpose(in + column * x.ldb, x.ldb, block.depth, out + column, columns);
  for (; column < columns; ++column)
    for (int64_t p = 0; p < block.depth; ++p) out[p * columns + column] = column < width ? in[column * x.ldb + p] : T(0);
}

/// Rows of C in strips of nearly equal height, none higher than a tile.
struct Strips {
  int64_t m, count;
  int64_t begin(int64_t strip) const { return m * strip / count; }
  int64_t rows(int64_t strip) const { return begin(strip + 1) - begin(strip); }
};

/// One strip of C against the panels first … last−1 of a packed block.
template <class T>
void multiply_strip(const Product<T>& x, const Block& block, const T* packed, const Strips& strips, int64_t strip, int64_t first,
                    int64_t last) {
  const int64_t i = strips.begin(strip), rows = strips.rows(strip), columns = x.kernels.columns;
  GemmTile<T> tile{block.depth, nullptr, x.lda, nullptr, nullptr, x.ldc, columns, x.alpha, x.add || block.p > 0};
  alignas(64) T strip_of_a[GemmKernels<T>::kMaxRows * kDepth];
  if (x.transpose_a) {
    const T* in = x.a + block.p * x.lda + i;
    for (int64_t p = 0; p < block.depth; ++p, in += x.lda) std::copy(in, in + rows, strip_of_a + p * rows);
    tile.a = strip_of_a;
  } else {
    tile.a = x.a + i * x.lda + block.p;
  }
  const auto run = (x.transpose_a ? x.kernels.packed : x.kernels.direct)[rows];
  for (int64_t panel = first; panel < last; ++panel) {
    tile.b = packed + panel * columns * block.depth;
    tile.c = x.c + i * x.ldc + block.j + panel * columns;
    tile.columns = std::min(columns, block.width - panel * columns);
    run(tile);
  }
}

/// Calls body for every block of B; depth outermost inside columns, so that a block of C is finished before the next.
template <class T, class Body>
void for_blocks(const Product<T>& x, Body body) {
  for (int64_t j = 0; j < x.n; j += kColumns)
    for (int64_t p = 0; p < x.k; p += kDepth) body(Block{p, std::min(kDepth, x.k - p), j, std::min(kColumns, x.n - j)});
}

template <class T>
T* pack_buffer(const Product<T>& x) {
  static thread_local PackBuffer<T> buffer;
  return buffer.at_least(std::min(x.k, kDepth) * ceil_div(std::min(x.n, kColumns), x.kernels.columns) * x.kernels.columns);
}

/// C = 0 or C when there is nothing to sum.
template <class T>
bool empty(const Product<T>& x) {
  if (x.k > 0) return false;
  for (int64_t i = 0; !x.add && i < x.m; ++i) std::fill_n(x.c + i * x.ldc, x.n, T(0));
  return true;
}

}  // namespace

template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
                 int64_t ldb, bool add, T* c, int64_t ldc) {
  const Product<T> x{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, add, c, ldc};
  if (m == 0 || n == 0 || empty(x)) return;
  T* packed = pack_buffer(x);
  const Strips strips{m, ceil_div(m, x.kernels.rows)};
  for_blocks(x, [&](const Block& block) {
    const int64_t panels = ceil_div(block.width, x.kernels.columns);
    for (int64_t panel = 0; panel < panels; ++panel) pack_panel(x, block, panel, packed + panel * x.kernels.columns * block.depth);
    for (int64_t strip = 0; strip < strips.count; ++strip) multiply_strip(x, block, packed, strips, strip, 0, panels);
  });
}

template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          bool add, T* c, int64_t ldc) {
  const Product<T> x{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, add, c, ldc};
  if (m == 0 || n == 0 || empty(x)) return;
  T* packed = pack_buffer(x);
  const Strips strips{m, ceil_div(m, x.kernels.rows)};
  // Each element of C is summed in one task a block, in an order that depends on the shape only.
  const int64_t strips_a_task = std::clamp<int64_t>(strips.count / 32, 1, 8), tasks_down = ceil_div(strips.count, strips_a_task);
  for_blocks(x, [&](const Block& block) {
    const int64_t panels = ceil_div(block.width, x.kernels.columns);
    parallel_for(panels, [&](int64_t panel) { pack_panel(x, block, panel, packed + panel * x.kernels.columns * block.depth); });
    const int64_t tasks_across = tasks_down >= 8 ? 1 : std::min<int64_t>(panels, 8), panels_a_task = ceil_div(panels, tasks_across);
    parallel_for(tasks_down * tasks_across, [&](int64_t task) {
      const int64_t first = task % tasks_across * panels_a_task, last = std::min(panels, first + panels_a_task);
      const int64_t begin = task / tasks_across * strips_a_task, end = std::min(strips.count, begin + strips_a_task);
      for (int64_t strip = begin; first < last && strip < end; ++strip) multiply_strip(x, block, packed, strips, strip, first, last);
    });
  });
}

template void gemm<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool, float*,
                          int64_t);
template void gemm<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t, bool, double*,
                           int64_t);
template void gemm_serial<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool, float*,
                                 int64_t);
template void gemm_serial<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t, bool,
                                  double*, int64_t);

}  // namespace saccade::cpu

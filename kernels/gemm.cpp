#include "kernels/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "kernels/parallel.h"

extern "C" void openblas_set_num_threads(int);

namespace saccade::cpu {
namespace {

// Threads are ours: one BLAS call per tile, single-threaded, so that results do not depend on the thread count.
const bool single_threaded_blas = [] {
  openblas_set_num_threads(1);
  return true;
}();

constexpr int64_t kTileRows = 256, kTileColumns = 256;

void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb,
          float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double* a, int lda, const double* b, int ldb,
          double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace

template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
                 int64_t ldb, bool add, T* c, int64_t ldc) {
  call(transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
       static_cast<int>(k), alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), add ? T(1) : T(0), c, static_cast<int>(ldc));
}

template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          bool add, T* c, int64_t ldc) {
  const int64_t rows = (m + kTileRows - 1) / kTileRows, columns = (n + kTileColumns - 1) / kTileColumns;
  // Long, narrow products are cut along rows only: each tile packs B once.
  const int64_t across = rows >= 8 ? 1 : columns;
  const int64_t tile_columns = across == 1 ? n : kTileColumns;
  parallel_for(rows * across, [&](int64_t tile) {
    const int64_t i = tile / across * kTileRows, j = tile % across * tile_columns;
    gemm_serial(transpose_a, transpose_b, std::min(kTileRows, m - i), std::min(tile_columns, n - j), k, alpha,
                a + (transpose_a ? i : i * lda), lda, b + (transpose_b ? j * ldb : j), ldb, add, c + i * ldc + j, ldc);
  });
}

template void gemm<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool, float*, int64_t);
template void gemm<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t, bool, double*, int64_t);
template void gemm_serial<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool, float*, int64_t);
template void gemm_serial<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t, bool, double*, int64_t);

}  // namespace saccade::cpu

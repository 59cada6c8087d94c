#pragma once
#include <cstdint>

namespace saccade::cpu {

/// C = alpha · op(A) · op(B) + (add ? C : 0), row-major; op transposes when its flag is set.
/// op(A) [m,k], op(B) [k,n], C [m,n]; lda, ldb, ldc are the row strides of A, B, C as stored.
/// B is packed once for all threads; each element of C is summed by one task in an order that depends on the shape only, so
/// results do not depend on the number of threads. The tiles (gemm_tile.h) are chosen for the processor at run time, because a BLAS library
/// that does not know a newer processor falls back to its slowest kernels (OpenBLAS 0.3.21 on an Emerald Rapids: 32 against 145 GFLOP/s per
/// core here). Throws std::bad_alloc.
template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          bool add, T* c, int64_t ldc);

/// The same on the calling thread alone, for use inside a task.
template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
                 int64_t ldb, bool add, T* c, int64_t ldc);

extern template void gemm<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool, float*,
                                 int64_t);
extern template void gemm<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t, bool,
                                  double*, int64_t);
extern template void gemm_serial<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, bool,
                                        float*, int64_t);
extern template void gemm_serial<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t,
                                         bool, double*, int64_t);

}  // namespace saccade::cpu

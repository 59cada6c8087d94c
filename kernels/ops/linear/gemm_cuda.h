#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// Row-major matrices on the device; `stride` in elements between the members of a batch (0: the same for all).
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::bf16;
  int64_t row_stride = 0, stride = 0;
};
inline Matrix matrix(const Tensor& x, int64_t row_stride) { return {x.raw(), x.dtype(), row_stride, 0}; }

/// C = alpha · op(A) · op(B) + (add ? C : 0) by cuBLASLt with fp32 accumulation; op(A) [m,k], op(B) [k,n], C [m,n].
/// A and B both bf16 or both f32 (then true fp32); C bf16 or f32. The algorithm is the fastest, measured at the first use of a
/// shape, of those that cuBLASLt's heuristic names and whose result equals that of the first one bit for bit: so a product gives the same
/// bytes on every run. The workspace is this program's. A product can be captured in a CUDA graph after its first use.
void gemm(int device, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a, const Matrix& b,
          bool add, const Matrix& c, int64_t batch = 1);

/// C = op(A) · op(B) + addend, in one pass; the addend has C's shape, dtype and strides.
void gemm_onto(int device, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b,
               const Matrix& addend, const Matrix& c);

}  // namespace saccade::cuda

#include "kernels/cuda/gemm/fused_gemm.cuh"

namespace saccade::cuda::fused {

CUtensorMap tensor_map(const Matrix& x, int64_t rows, int64_t columns, int box_rows) {
  return hopper::tensor_map(x.data, {columns, rows}, {x.row_stride * int64_t{sizeof(bf16)}}, {kDepth, box_rows});
}

}  // namespace saccade::cuda::fused

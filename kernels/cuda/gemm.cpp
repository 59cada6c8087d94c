#include "kernels/cuda/gemm.h"

#ifdef SACCADE_CUDA
#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>

#include "kernels/cuda/check.h"

namespace saccade::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t data_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// Handle and workspace of one device.
struct Context {
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  explicit Context(int device) {
    stream(device);
    check(cublasLtCreate(&handle), "create");
    cuda::check(cudaMalloc(&workspace, kWorkspaceBytes));
  }
};

Context& context(int device) {
  static std::map<int, std::unique_ptr<Context>> contexts;
  auto& slot = contexts[device];
  if (!slot) slot = std::make_unique<Context>(device);
  return *slot;
}

/// A product prepared once per shape: descriptors and the algorithm.
struct Prepared {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

/// Largest power of two up to 256 that divides an address.
uint32_t alignment(const Matrix& x) {
  const auto address = reinterpret_cast<uintptr_t>(x.data);
  return static_cast<uint32_t>(address % 256 == 0 ? 256 : address & (~address + 1));
}

/// rows × columns as stored row-major is columns × rows in cuBLAS's column-major view.
cublasLtMatrixLayout_t layout(int64_t rows, int64_t columns, const Matrix& m, int64_t batch) {
  cublasLtMatrixLayout_t l = nullptr;
  check(cublasLtMatrixLayoutCreate(&l, data_type(m.dtype), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), m.row_stride),
        "layout");
  const int32_t count = static_cast<int32_t>(batch);
  check(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "batch");
  check(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.stride, sizeof m.stride), "stride");
  return l;
}

Prepared prepare(Context& lt, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, const Matrix& c,
                 int64_t batch) {
  Prepared p;
  check(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation");
  // Cᵀ = op(B)ᵀ op(A)ᵀ: the operands change places, their transposition flags stay.
  const cublasOperation_t first = tb ? CUBLAS_OP_T : CUBLAS_OP_N, second = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first), "transpose");
  check(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second), "transpose");
  p.b = tb ? layout(n, k, b, batch) : layout(k, n, b, batch);
  p.a = ta ? layout(k, m, a, batch) : layout(m, k, a, batch);
  p.c = layout(m, n, c, batch);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "preference");
  check(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes, sizeof kWorkspaceBytes),
      "workspace");
  const uint32_t align_a = alignment(b), align_b = alignment(a), align_c = alignment(c);
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a, sizeof align_a),
        "alignment");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b, sizeof align_b),
        "alignment");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_c, sizeof align_c),
        "alignment");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_c, sizeof align_c),
        "alignment");
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(lt.handle, p.operation, p.b, p.a, p.c, p.c, preference, 1, &result, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status, "choosing an algorithm");
  if (found == 0)
    throw DeviceError("cuBLASLt has no algorithm for a product " + std::to_string(m) + " x " + std::to_string(n) + " x " +
                      std::to_string(k));
  p.algorithm = result.algo;
  return p;
}

}  // namespace

void gemm(int device, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a, const Matrix& b,
          bool add, const Matrix& c, int64_t batch) {
  Context& lt = context(device);
  // What the choice of algorithm depends on; addresses count by their alignment.
  using Key = std::array<int64_t, 18>;
  static std::map<Key, Prepared> prepared;
  const Key key{device,
                transpose_a,
                transpose_b,
                m,
                n,
                k,
                batch,
                int64_t{a.dtype == DType::bf16},
                int64_t{c.dtype == DType::bf16},
                a.row_stride,
                b.row_stride,
                c.row_stride,
                a.stride,
                b.stride,
                c.stride,
                alignment(a),
                alignment(b),
                alignment(c)};
  auto found = prepared.find(key);
  if (found == prepared.end()) found = prepared.emplace(key, prepare(lt, transpose_a, transpose_b, m, n, k, a, b, c, batch)).first;
  const Prepared& p = found->second;
  const float one = static_cast<float>(alpha), beta = add ? 1.0f : 0.0f;
  check(cublasLtMatmul(lt.handle, p.operation, &one, b.data, p.b, a.data, p.a, &beta, c.data, p.c, const_cast<void*>(c.data), p.c,
                       &p.algorithm, lt.workspace, kWorkspaceBytes, stream(device)),
        "product");
}

}  // namespace saccade::cuda
#endif

#include "kernels/ops/linear/gemm_cuda.h"

#ifdef SACCADE_CUDA
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/gemm/gemm_choice.h"
#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_separate_memory.h"
#include "kernels/engine/device.h"
#include "kernels/engine/timed_choices.h"

namespace saccade::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kCandidates = 24;  ///< algorithms that are tried for a shape, with a workspace and without one each
constexpr size_t kMostCandidates = 2 * kCandidates;
constexpr double kWorthTrying = 1e8;  ///< FLOPs of a product from which on that pays

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t data_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// Handle and workspace of one stream: products of two streams may run at once.
struct Context {
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  Context() {
    check(cublasLtCreate(&handle), "create");
    cuda::check(cudaMalloc(&workspace, kWorkspaceBytes));
  }
};

const Context& context(Stream s) {
  static std::map<Stream, std::unique_ptr<Context>> contexts;
  auto& slot = contexts[s];
  if (!slot) slot = std::make_unique<Context>();
  return *slot;
}

/// C = alpha · op(A) · op(B) + beta · addend.
struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k, batch;
  float alpha, beta;
  Matrix a, b, addend, c;
};

/// With the workspace that it may use.
struct Algorithm {
  cublasLtMatmulAlgo_t how{};
  size_t workspace = 0;
};

/// A product prepared once per shape: descriptors and the algorithm.
struct Prepared {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  Algorithm algorithm{};
};

cublasStatus_t run(const Context& lt, Stream s, const Prepared& p, const Algorithm& algorithm, const Product& x, void* to) {
  return cublasLtMatmul(lt.handle, p.operation, &x.alpha, x.b.data, p.b, x.a.data, p.a, &x.beta, x.addend.data, p.c, to, p.c,
                        &algorithm.how, algorithm.workspace > 0 ? lt.workspace : nullptr, algorithm.workspace, s);
}

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

/// Adds algorithms for a product, likeliest first, whose demands the alignment of its matrices meets.
void add_algorithms(std::vector<Algorithm>& all, const Context& lt, const Prepared& p, const Product& x, size_t workspace) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "preference");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value), "preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(x.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(x.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(x.addend));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(x.c));
  std::vector<cublasLtMatmulHeuristicResult_t> found(kCandidates);
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(lt.handle, p.operation, p.b, p.a, p.c, p.c, preference, kCandidates, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (workspace > 0) check(status, "choosing an algorithm");
  for (int i = 0; i < count; ++i) all.push_back({found[static_cast<size_t>(i)].algo, workspace});
}

/// Those without a workspace come last. They need none cleared in front of them, which takes as long as a short product's tail. They are
/// left out where more than `enough` are found before.
std::vector<Algorithm> algorithms(const Context& lt, const Prepared& p, const Product& x, size_t enough) {
  std::vector<Algorithm> all;
  add_algorithms(all, lt, p, x, kWorkspaceBytes);
  if (all.empty())
    throw DeviceError("cuBLASLt has no algorithm for a product " + std::to_string(x.m) + " x " + std::to_string(x.n) + " x " +
                      std::to_string(x.k));
  if (all.size() <= enough) add_algorithms(all, lt, p, x, 0);
  return all;
}

/// What the choice of algorithm depends on; addresses count by their alignment.
using Key = std::array<int64_t, 20>;
Key key_of(int device, const Product& x) {
  return {device,
          x.transpose_a,
          x.transpose_b,
          x.m,
          x.n,
          x.k,
          x.batch,
          int64_t{x.a.dtype == DType::bf16},
          int64_t{x.c.dtype == DType::bf16},
          x.a.row_stride,
          x.b.row_stride,
          x.c.row_stride,
          x.a.stride,
          x.b.stride,
          x.c.stride,
          alignment(x.a),
          alignment(x.b),
          alignment(x.addend),
          alignment(x.c),
          int64_t{x.beta != 0}};
}

/// The product on this GPU by this library, for processes to come.
std::string name_of(const Key& key) {
  static std::map<int64_t, std::string> gpu_names;
  std::string& gpu = gpu_names[key[0]];
  if (gpu.empty()) gpu = gpu_name(Device::cuda(static_cast<int>(key[0])));
  std::string name = "cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", " + gpu + ", product";
  for (size_t i = 1; i < key.size(); ++i) name += " " + std::to_string(key[i]);
  return name;
}

/// The fastest algorithm: the one that was found before, by this process or an earlier one, else by timing.
Algorithm fastest(const Context& lt, Stream s, const Prepared& p, const Key& key, const Product& x) {
  const std::string name = name_of(key);
  const auto kept = timed_choices() ? timed_choices()->find(name) : std::nullopt;
  const size_t number = kept && *kept >= 0 ? static_cast<size_t>(*kept) : kMostCandidates;
  const std::vector<Algorithm> candidates = algorithms(lt, p, x, number);
  if (number < candidates.size()) return candidates[number];
  const auto best =
      fastest_of_equal(s, static_cast<int>(candidates.size()), x.m * x.n * x.batch * byte_size(x.c.dtype),
                       [&](int i, void* to) { return run(lt, s, p, candidates[static_cast<size_t>(i)], x, to) == CUBLAS_STATUS_SUCCESS; });
  if (best && timed_choices()) timed_choices()->keep(name, *best);
  return candidates[static_cast<size_t>(best.value_or(0))];
}

Prepared prepare(const Context& lt, Stream s, const Key& key, const Product& x) {
  Prepared p;
  check(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation");
  // Cᵀ = op(B)ᵀ op(A)ᵀ: the operands change places, their transposition flags stay.
  const cublasOperation_t first = x.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = x.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first), "transpose");
  check(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second), "transpose");
  p.b = x.transpose_b ? layout(x.n, x.k, x.b, x.batch) : layout(x.k, x.n, x.b, x.batch);
  p.a = x.transpose_a ? layout(x.k, x.m, x.a, x.batch) : layout(x.m, x.k, x.a, x.batch);
  p.c = layout(x.m, x.n, x.c, x.batch);
  const bool dense = x.c.row_stride == x.n && (x.batch == 1 || x.c.stride == x.m * x.n);
  const bool worth = dense && !separate_memory() && 2.0 * static_cast<double>(x.m * x.n * x.k * x.batch) >= kWorthTrying;
  p.algorithm = worth ? fastest(lt, s, p, key, x) : algorithms(lt, p, x, 0).front();
  return p;
}

/// cuBLASLt's kernels store by TMA.
void count_as_written(Stream s, const Product& x) {
  if (!separate_memory() || (x.beta != 0 && x.addend.data == x.c.data)) return;
  const int64_t element = byte_size(x.c.dtype);
  for (int64_t i = 0; i < x.batch; ++i)
    cuda::count_as_written(s, static_cast<char*>(const_cast<void*>(x.c.data)) + i * x.c.stride * element, x.m, x.n, x.c.row_stride,
                           element);
}

void multiply(int device, const Product& x) {
  static std::map<Key, Prepared> prepared;
  const Stream s = stream(device);
  const Context& lt = context(s);
  const Key key = key_of(device, x);
  auto found = prepared.find(key);
  if (found == prepared.end()) found = prepared.emplace(key, prepare(lt, s, key, x)).first;
  count_as_written(s, x);
  check(run(lt, s, found->second, found->second.algorithm, x, const_cast<void*>(x.c.data)), "product");
}

}  // namespace

void gemm(int device, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a, const Matrix& b,
          bool add, const Matrix& c, int64_t batch) {
  multiply(device, {transpose_a, transpose_b, m, n, k, batch, static_cast<float>(alpha), add ? 1.0f : 0.0f, a, b, c, c});
}

void gemm_onto(int device, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b,
               const Matrix& addend, const Matrix& c) {
  multiply(device, {transpose_a, transpose_b, m, n, k, 1, 1.0f, 1.0f, a, b, addend, c});
}

}  // namespace saccade::cuda
#endif

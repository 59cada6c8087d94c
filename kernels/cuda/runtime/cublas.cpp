// cuBLASLt, found when a GPU first multiplies: the program starts on machines without it (the library takes half a gigabyte of
// address space). Defines the library's functions that gemm.cpp calls; each passes its arguments on.
#ifdef SACCADE_CUDA
#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdlib>

#include "kernels/cuda/runtime/cublas.h"
#include "kernels/engine/error.h"

namespace {

void* library() {
  static void* const handle = [] {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    const char* home = std::getenv("CUDA_HOME");
    for (const std::string& folder :
         {std::string(), std::string(home ? home : "/usr/local/cuda") + "/lib64/", std::string("/usr/local/cuda/lib64/")})
      if (void* found = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    const char* why = dlerror();
    throw saccade::DeviceError("training on a GPU needs " + name + ", which comes with the CUDA Toolkit and its runtime packages" +
                               (why ? std::string(": ") + why : std::string()));
  }();
  return handle;
}

template <class F>
F* find(F*, const char* name) {
  if (void* function = dlsym(library(), name)) return reinterpret_cast<F*>(function);
  throw saccade::DeviceError(std::string("libcublasLt has no ") + name);
}

}  // namespace

std::string saccade::cuda::cublas_problem() {
  try {
    library();
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

#define FORWARD(result, name, parameters, arguments) \
  result name parameters {                           \
    static const auto function = find(&name, #name); \
    return function arguments;                       \
  }

extern "C" {
FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FORWARD(size_t, cublasLtGetVersion, (), ())
FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
FORWARD(cublasStatus_t, cublasLtMatmul,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
         const void* b, cublasLtMatrixLayout_t b_layout, const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
         cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
         cudaStream_t stream),
        (handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace, workspace_bytes, stream))
FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
         cublasLtMatmulHeuristicResult_t* results, int* found),
        (handle, product, a, b, c, d, preference, wanted, results, found))
FORWARD(cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * product, cublasComputeType_t compute, cudaDataType_t scale),
        (product, compute, scale))
FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t product), (product))
FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes),
        (product, attribute, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference), (preference))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* value, size_t bytes),
        (preference, attribute, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t stride),
        (layout, type, rows, columns, stride))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
        (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t bytes),
        (layout, attribute, value, bytes))
}
#endif

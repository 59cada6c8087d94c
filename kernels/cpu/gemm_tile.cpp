#include "kernels/cpu/gemm_tile.h"

#include <utility>

#include "kernels/cpu/simd.h"

namespace saccade::cpu {
namespace {

#if defined(__x86_64__)
#define TARGET_512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define TARGET_256 __attribute__((target("avx2,fma")))
#endif

/// R rows by two vectors of accumulators; every step reads two vectors of B and R single elements of A.
template <class T, int kBytes, bool kPacked, int... r>
SACCADE_INLINE void tile(const GemmTile<T>& t, std::integer_sequence<int, r...>) {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  constexpr int kRows = sizeof...(r), kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector sums[kRows][2] = {};
  const Vector* b = reinterpret_cast<const Vector*>(t.b);
  if constexpr (kPacked) {
    const T* a = t.a;
    for (int64_t p = 0; p < t.k; ++p, b += 2, a += kRows) {
      const Vector b0 = b[0], b1 = b[1];
      ((sums[r][0] += a[r] * b0, sums[r][1] += a[r] * b1), ...);
    }
  } else {
    // Three rows share a pointer (offsets 0, 1, 2 rows): as many pointers as rows would not fit in registers.
    const int64_t row = t.a_row * static_cast<int64_t>(sizeof(T));
    const char* a[(kRows + 2) / 3] = {};
    ((a[r / 3] = r % 3 == 0 ? reinterpret_cast<const char*>(t.a) + r * row : a[r / 3]), ...);
    for (int64_t p = 0; p < t.k; ++p, b += 2) {
      const Vector b0 = b[0], b1 = b[1];
      ((sums[r][0] += *reinterpret_cast<const T*>(a[r / 3] + r % 3 * row) * b0,
        sums[r][1] += *reinterpret_cast<const T*>(a[r / 3] + r % 3 * row) * b1),
       ...);
      ((a[r / 3] += r % 3 == 0 ? sizeof(T) : 0), ...);
    }
  }
  if (t.columns == 2 * kLanes) {
    const auto store = [&](T* c, const Vector* sum) SACCADE_INLINE_LAMBDA {
      Vector* out = reinterpret_cast<Vector*>(c);
      out[0] = t.add ? out[0] + t.alpha * sum[0] : t.alpha * sum[0];
      out[1] = t.add ? out[1] + t.alpha * sum[1] : t.alpha * sum[1];
    };
    (store(t.c + r * t.ldc, sums[r]), ...);
  } else {
    const auto store = [&](T* c, const Vector* sum) SACCADE_INLINE_LAMBDA {
      for (int64_t j = 0; j < t.columns; ++j) {
        const T value = t.alpha * sum[j / kLanes][j % kLanes];
        c[j] = t.add ? c[j] + value : value;
      }
    };
    (store(t.c + r * t.ldc, sums[r]), ...);
  }
}

/// Sixteen rows at a time, so that what is written is whole cache lines.
template <class T>
SACCADE_INLINE void transpose_rows(const T* in, int64_t row, int64_t k, T* out, int64_t step) {
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < 16; ++r) out[p * step + r] = in[r * row + p];
}

#define TILE_FUNCTIONS(NAME, BYTES, TARGET)                                                 \
  template <class T, bool kPacked, int kRows>                                               \
  TARGET void tile_##NAME(const GemmTile<T>& t) {                                           \
    tile<T, BYTES, kPacked>(t, std::make_integer_sequence<int, kRows>());                   \
  }                                                                                         \
  template <class T>                                                                        \
  TARGET void transpose_##NAME(const T* in, int64_t row, int64_t k, T* out, int64_t step) { \
    transpose_rows(in, row, k, out, step);                                                  \
  }                                                                                         \
  template <class T, int... r>                                                              \
  GemmKernels<T> kernels_##NAME(std::integer_sequence<int, r...>) {                         \
    GemmKernels<T> k{sizeof...(r), 2 * BYTES / sizeof(T), {}, {}, transpose_##NAME<T>};     \
    ((k.direct[r + 1] = tile_##NAME<T, false, r + 1>), ...);                                \
    ((k.packed[r + 1] = tile_##NAME<T, true, r + 1>), ...);                                 \
    return k;                                                                               \
  }
#if defined(__x86_64__)
TILE_FUNCTIONS(512, 64, TARGET_512)
TILE_FUNCTIONS(256, 32, TARGET_256)
#endif
TILE_FUNCTIONS(baseline, 16, )
#undef TILE_FUNCTIONS

template <class T>
GemmKernels<T> choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return kernels_512<T>(std::make_integer_sequence<int, 14>());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_256<T>(std::make_integer_sequence<int, 6>());
#endif
  return kernels_baseline<T>(std::make_integer_sequence<int, 6>());
}

}  // namespace

template <class T>
const GemmKernels<T>& gemm_kernels() {
  static const GemmKernels<T> kernels = choose<T>();
  return kernels;
}

template const GemmKernels<float>& gemm_kernels();
template const GemmKernels<double>& gemm_kernels();

}  // namespace saccade::cpu

#pragma once
#include <cstdint>

namespace saccade::cpu {

/// One block of a product, held in registers: C [rows, columns] = alpha · A · B + (add ? C : 0).
template <class T>
struct GemmTile {
  int64_t k;
  const T* a;  ///< element (r, p) of A: a[r · a_row + p], or a[p · rows + r] when packed
  int64_t a_row;
  const T* b;  ///< a panel: `columns()` elements for each p, padded with zeros
  T* c;
  int64_t ldc, columns;  ///< columns of C to write, at most those of a panel
  T alpha;
  bool add;
};

/// The micro-kernels for the instruction set of this processor (AVX-512, AVX2 with FMA, or baseline).
template <class T>
struct GemmKernels {
  static constexpr int kMaxRows = 14;
  int rows;                                          ///< rows of a full tile
  int columns;                                       ///< columns of a panel
  void (*direct[kMaxRows + 1])(const GemmTile<T>&);  ///< by number of rows, 1 … rows
  void (*packed[kMaxRows + 1])(const GemmTile<T>&);  ///< the same for packed A
  /// Transposes 16 rows by `k` elements: out[p · step + r] = in[r · row + p].
  void (*transpose)(const T* in, int64_t row, int64_t k, T* out, int64_t step);
};
template <class T>
const GemmKernels<T>& gemm_kernels();

extern template const GemmKernels<float>& gemm_kernels();
extern template const GemmKernels<double>& gemm_kernels();

}  // namespace saccade::cpu

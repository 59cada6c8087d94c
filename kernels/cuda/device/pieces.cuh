#pragma once
/// Tensors [rows, width_i] that together are the columns of one [rows, Σ width_i]. Device code only.
#include <string>
#include <vector>

#include "kernels/cuda/device/values.cuh"

namespace saccade::cuda {

constexpr int kMostPieces = 8;

template <class T>
struct Pieces {
  T* data[kMostPieces];  ///< null: zeros
  int width[kMostPieces], count, total;

  Pieces(const std::vector<Tensor>& tensors, const std::vector<int64_t>& widths) : data{}, width{}, count(0), total(0) {
    if (widths.size() > kMostPieces)
      throw DeviceError("the CUDA engine does not cut a tensor into " + std::to_string(widths.size()) + " pieces");
    for (int64_t w : widths) {
      data[count] = pointer_or_null<T>(tensors[static_cast<size_t>(count)]);
      width[count++] = static_cast<int>(w);
      total += static_cast<int>(w);
    }
  }
  /// A column of every row: row r is at data + r · stride; null for a tensor of zeros.
  struct Column {
    T* data;
    int stride;
  };
  __device__ Column column(int at) const {
#pragma unroll
    for (int p = 0; p < kMostPieces; ++p) {
      if (p >= count) break;
      if (at < width[p]) return {data[p] ? data[p] + at : nullptr, width[p]};
      at -= width[p];
    }
    return {nullptr, 0};
  }
  /// Address of element i of x; null for a tensor of zeros.
  __device__ T* at(int64_t i) const {
    const int64_t row = i / total;
    const Column c = column(static_cast<int>(i - row * total));
    return c.data ? c.data + row * c.stride : nullptr;
  }
};

/// f(std::integral_constant<int, N>) with vectors of N that divide every width.
template <int N, class F>
void in_pieces_of(const std::vector<int64_t>& widths, F&& f) {
  bool whole = true;
  for (int64_t w : widths) whole = whole && w % N == 0;
  in_pieces<N>(whole ? 0 : 1, f);
}

}  // namespace saccade::cuda

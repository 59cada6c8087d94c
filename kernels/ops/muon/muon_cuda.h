#pragma once
#include <vector>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/muon/muon.h"

namespace saccade::cuda {

/// Elements per block of the kernels that go over matrices.
constexpr int64_t kMuonSlice = 2048;
inline int64_t muon_parts(const Shape& matrix) { return (matrix.size() + kMuonSlice - 1) / kMuonSlice; }

/// Slots of one shape together, groups and slots in the order in which they come.
inline std::vector<std::vector<const MuonSlot*>> muon_groups(const std::vector<MuonSlot>& slots) {
  std::vector<std::vector<const MuonSlot*>> groups;
  for (const MuonSlot& slot : slots) {
    size_t i = 0;
    while (i < groups.size() && groups[i].front()->value.shape() != slot.value.shape()) ++i;
    if (i == groups.size()) groups.emplace_back();
    groups[i].push_back(&slot);
  }
  return groups;
}

/// For the largest group of `count` matrices [n, k], m = min(n, k).
struct MuonWorkspace {
  Tensor x, y;       ///< bf16 [count n k]: the iterate and the next one
  Tensor gram, sum;  ///< bf16 [count m²]
  Tensor squares;    ///< f64 [count muon_parts]
};

/// `learning_rate` and `norm` f64 [1] on the device. Nothing is touched when the norm is not finite.
void muon_step(Stream stream, const std::vector<MuonSlot>& slots, const Muon& options, const Tensor& learning_rate, double clip,
               const Tensor& norm, const MuonWorkspace& workspace);

}  // namespace saccade::cuda

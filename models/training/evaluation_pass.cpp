#include "models/training/evaluation_pass.h"

#include <algorithm>

#include "kernels/position_sums.h"
#include "kernels/transfer.h"

namespace saccade {

std::vector<double> EvaluationPass::losses(const std::vector<int32_t>& tokens, const std::vector<int32_t>& targets, int64_t sequences,
                                           int64_t length) {
  Arena& arena = work_.arena();
  const Device device = arena.device();
  const Tensor sums = arena.allocate({length}, DType::f64);
  if (!device.is_plan()) fill_zero(sums);
  const int64_t most = std::max<int64_t>(1, work_.sequences() * work_.length() / length);
  for (int64_t first = 0; first < sequences; first += most) {
    const int64_t count = std::min(most, sequences - first);
    cuda::Recorded& pass = recorded_[{count, length, arena.used()}];
    const Tensor x = arena.allocate({count, length}, DType::i32), y = arena.allocate({count, length}, DType::i32);
    if (!device.is_plan()) {
      copy_from_host(x, tokens.data() + first * length);
      copy_from_host(y, targets.data() + first * length);
    }
    pass(device, [&] {
      Tape tape(arena, false);
      work_.prepare(tape);
      Tensor losses;
      work_.model().loss(tape, x, y, nullptr, &losses);
      add_position_sums(tape, losses, sums);
      cost_ = {cost_.flops + tape.cost().flops, cost_.bytes + tape.cost().bytes};
    });
  }
  return device.is_plan() ? std::vector<double>(static_cast<size_t>(length)) : to_doubles(sums);
}

}  // namespace saccade

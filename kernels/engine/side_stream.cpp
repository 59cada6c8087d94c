#include "kernels/engine/side_stream.h"

#include <algorithm>

namespace saccade {
namespace {

/// Of work that leaves the GPU room for other work, 10 µs on an H200; larger products fill the GPU by themselves, and everything got slower
/// there.
constexpr double kMostFlops = 6.5e9;
constexpr int64_t kMostKept = int64_t{1} << 28;  ///< bytes held for work on the side stream; beyond, the oldest work is waited for

}  // namespace

void SideStream::begin(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes,
                       const std::function<void()>& cpu, const std::function<void()>& cuda) {
  if (cost.flops > kMostFlops) return tape.run(op, cost, cpu, cuda);
  Work work{reads, {}, std::make_unique<cuda::SideWork>()};
  for (const GradTarget& target : writes)
    if (target) work.writes.push_back(target.tensor);
  tape.run(op, cost, cpu, [&] { work.branch->start(tape.device().index, [&](cuda::Stream) { cuda(); }); });
  if (!tape.device().targets_cuda()) return;
  works_.push_back(std::move(work));
  const auto kept = [this] {
    int64_t bytes = 0;
    for (const Work& w : works_)
      for (const Tensor& x : w.reads) bytes += x.bytes();
    return bytes;
  };
  while (works_.size() > 1 && kept() > kMostKept) works_.pop_front();
}

void SideStream::wait_for_writes(const Tensor& x) {
  const auto last = std::find_if(works_.rbegin(), works_.rend(), [&](const Work& w) {
    return std::any_of(w.writes.begin(), w.writes.end(), [&](const Tensor& y) { return y.id() == x.id(); });
  });
  works_.erase(works_.begin(), last.base());
}

void SideStream::wait_for_reads(const Tensor& x) {
  while (!x.sole_owner() && !works_.empty()) works_.pop_front();
}

void SideStream::end() {
  while (!works_.empty()) works_.pop_front();
}

}  // namespace saccade

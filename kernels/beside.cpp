#include "kernels/beside.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "kernels/cuda/branch.h"

namespace saccade {
namespace {

/// Of work that leaves room beside it, 10 µs on an H200; larger products fill the GPU by themselves, and everything got slower there.
constexpr double kMostFlops = 6.5e9;
constexpr int64_t kMostKept = int64_t{1} << 28;  ///< bytes that wait for work beside; the oldest is waited for beyond

struct Work {
  std::vector<Tensor> reads, writes;
  std::unique_ptr<cuda::Branch> branch;  ///< ends first, which joins
};

/// Of a tape, oldest first.
std::deque<Work>* pending(const Tape& tape, bool make = false) {
  thread_local std::unordered_map<const Tape*, std::deque<Work>> of_tapes;
  if (make) return &of_tapes[&tape];
  const auto found = of_tapes.find(&tape);
  return found == of_tapes.end() ? nullptr : &found->second;
}

int64_t kept(const std::deque<Work>& works) {
  int64_t bytes = 0;
  for (const Work& w : works)
    for (const Tensor& x : w.reads) bytes += x.bytes();
  return bytes;
}

}  // namespace

void begin_beside(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes,
                  const std::function<void()>& cpu, const std::function<void()>& cuda) {
  if (cost.flops > kMostFlops) return tape.run(op, cost, cpu, cuda);
  Work work{reads, {}, std::make_unique<cuda::Branch>()};
  for (const GradTarget& target : writes)
    if (target) work.writes.push_back(target.tensor);
  tape.run(op, cost, cpu, [&] { work.branch->start(tape.device().index, [&](cuda::Stream) { cuda(); }); });
  if (!tape.device().targets_cuda()) return;
  std::deque<Work>& works = *pending(tape, true);
  works.push_back(std::move(work));
  while (works.size() > 1 && kept(works) > kMostKept) works.pop_front();
}

void wait_for_writes(const Tape& tape, const Tensor& x) {
  std::deque<Work>* works = pending(tape);
  if (!works) return;
  const auto last = std::find_if(works->rbegin(), works->rend(), [&](const Work& w) {
    return std::any_of(w.writes.begin(), w.writes.end(), [&](const Tensor& y) { return y.id() == x.id(); });
  });
  works->erase(works->begin(), last.base());
}

void wait_for_reads(const Tape& tape, const Tensor& x) {
  if (std::deque<Work>* works = pending(tape))
    while (!x.sole_owner() && !works->empty()) works->pop_front();
}

BesideEnds::~BesideEnds() {
  if (std::deque<Work>* works = pending(tape_))
    while (!works->empty()) works->pop_front();
}

}  // namespace saccade

#pragma once
#include <functional>
#include <vector>

#include "kernels/tape.h"

namespace saccade {

void begin_beside(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes,
                  const std::function<void()>& cpu, const std::function<void()>& cuda);

/// An op of a backward pass whose results nothing on the way down waits for: gradients of weights. On a GPU it goes on beside
/// what follows, on a second stream, in the order of these calls, unless it is large enough to fill the GPU by itself; what it
/// reads and writes lives until it is done, at the latest at the end of Tape::backward. Elsewhere it is Tape::run. It may not take
/// memory from the tape.
template <class Cpu, class Cuda>
void run_beside(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes, Cpu&& cpu,
                [[maybe_unused]] Cuda&& cuda) {
#ifdef SACCADE_CUDA
  begin_beside(tape, op, cost, reads, writes, cpu, cuda);
#else  // what `cuda` calls is not there; a plan for a GPU counts all the same
  begin_beside(tape, op, cost, reads, writes, cpu, {});
#endif
}

/// The device waits for what is done beside and writes to x.
void wait_for_writes(const Tape& tape, const Tensor& x);
/// The device waits until x belongs to its owner alone, or nothing is done beside any more.
void wait_for_reads(const Tape& tape, const Tensor& x);

/// The end of what was begun beside a backward pass, whichever way that ends.
class BesideEnds {
 public:
  explicit BesideEnds(const Tape& tape) : tape_(tape) {}
  ~BesideEnds();
  BesideEnds(const BesideEnds&) = delete;
  BesideEnds& operator=(const BesideEnds&) = delete;

 private:
  const Tape& tape_;
};

}  // namespace saccade

#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/engine/cuda_side_stream.h"
#include "kernels/engine/tape.h"

namespace saccade {

/// Work of a tape's backward pass on a side stream (run_on_side_stream): on a GPU a second stream, in the order it was begun.
class SideStream {
 public:
  SideStream() = default;
  ~SideStream() { end(); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  void begin(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes,
             const std::function<void()>& cpu, const std::function<void()>& cuda);
  /// The device waits for the side stream's writes to x.
  void wait_for_writes(const Tensor& x);
  /// The device waits until the side stream no longer holds x, or has no work left.
  void wait_for_reads(const Tensor& x);
  /// The device waits for all work of the side stream.
  void end();

 private:
  struct Work {
    std::vector<Tensor> reads, writes;
    std::unique_ptr<cuda::SideWork> branch;  ///< ends first, which joins
  };
  std::deque<Work> works_;  ///< oldest first
};

/// Ends the side stream's work of a backward pass on every exit from it.
class SideStreamEnd {
 public:
  explicit SideStreamEnd(Tape& tape) : side_stream_(tape.side_stream()) {}
  ~SideStreamEnd() { side_stream_.end(); }
  SideStreamEnd(const SideStreamEnd&) = delete;
  SideStreamEnd& operator=(const SideStreamEnd&) = delete;

 private:
  SideStream& side_stream_;
};

/// An op of a backward pass whose results no later op of that pass reads: gradients of weights. On a GPU it runs on the side stream, unless
/// it is large enough to fill the GPU by itself; the tensors it reads and writes live until it is done, at the latest at the end of
/// Tape::backward. Elsewhere it is Tape::run. It may not allocate from the tape.
template <class Cpu, class Cuda>
void run_on_side_stream(Tape& tape, const char* op, Cost cost, const std::vector<Tensor>& reads, const std::vector<GradTarget>& writes,
                        Cpu&& cpu, [[maybe_unused]] Cuda&& cuda) {
#ifdef SACCADE_CUDA
  tape.side_stream().begin(tape, op, cost, reads, writes, cpu, cuda);
#else  // what `cuda` calls is not there; a plan for a GPU counts all the same
  tape.side_stream().begin(tape, op, cost, reads, writes, cpu, {});
#endif
}

}  // namespace saccade

#pragma once
#include <string>
#include <vector>

#include "kernels/engine/error.h"
#include "kernels/engine/tensor.h"

namespace saccade {

/// A rank of the run has ended, or gives no sign of life.
class RankLost : public Error {
 public:
  using Error::Error;
};

/// What the ranks of one run, each a process, say to each other. Every rank makes the same calls in the same order; a call returns when
/// this rank has sent and received what it has to. Nothing is added up here: sums have orders of their own (GradientExchange).
/// Every call throws RankLost, naming the rank, its process and its host, when another rank has ended or is silent for too long, and Error
/// when the ranks are not at the same call.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// By rank: tensors of any shapes, sent as the bytes that they are.
  using Parts = std::vector<std::vector<Tensor>>;
  /// send[r] goes to rank r, receive[r] is what it sends here; both have a list for every rank, and those of this rank are left alone. All
  /// tensors lie on `device`, of one kind on all ranks, and tensor by tensor what r sends is as large as what is received of it. On a GPU
  /// the call takes its place in the order of the device's work.
  virtual void all_to_all(Device device, const Parts& send, const Parts& receive) = 0;
  /// parts[r] is what rank r has; afterwards every rank has all of them.
  void all_gather(Device device, const Parts& parts);

  /// Bytes of rank 0, which every rank gets; those given on another rank count for nothing.
  virtual std::string broadcast(const std::string& bytes) = 0;
  /// Whether it is so on any rank, the same answer on every one.
  virtual bool any(bool here) = 0;
  /// Returns when every rank has come here.
  void barrier() { any(false); }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

}  // namespace saccade

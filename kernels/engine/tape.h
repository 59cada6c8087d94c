#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/engine/arena.h"
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/error.h"
#include "kernels/engine/tensor.h"

namespace saccade {

class SideStream;

/// Least work of an op: a multiply-add counts as two FLOPs; bytes are read and written once each.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// Runs ops on one device and records their backward passes.
///
/// An op is a free function that takes the tape first:
///
///     Tensor scale(Tape& tape, const Tensor& x, double a) {
///       Tensor y = tape.empty(x.shape(), x.dtype());
///       tape.run("scale", {flops, bytes}, [&] { cpu::scale(x, y, a); });
///       tape.record({x}, {&y}, [=](Tape& t) {                     // called in backward, when d_y is complete
///         Tensor dy = t.grad(y);
///         GradTarget dx = t.grad_target(x);                       // where d_x goes; dx.add says "+=" instead of "="
///         t.run("scale.backward", …, [&] { cpu::scale(dy, dx.tensor, a, dx.add); });
///       });
///       return y;
///     }
///
/// On `plan` nothing runs: the same calls only add up costs and the arena's bookkeeping.
/// The recorded closures hold the activations saved for backward; backward frees them as it passes.
///
/// Dtypes: on the CPU activations are f32 or f64, on CUDA f32 or bf16; parameters and statistics are of accumulation_dtype(activation).
/// Errors: an op's header says what the op throws for its arguments (std::invalid_argument from kernels/engine/expect.h, or UsageError).
/// Every op throws DeviceError where memory is exhausted, a CUDA call fails or there is no CUDA kernel.
class Tape {
 public:
  /// With recording off (evaluation, inspection) nothing is saved for backward.
  Tape(Arena& arena, bool recording);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Device device() const { return arena_.device(); }
  cuda::Stream stream() const { return cuda::stream(device().index); }  ///< on a CUDA device

  /// Mixed precision (CUDA): activations are made in `activations` (bf16) although parameters are f32. Ops that turn
  /// parameters into activations (embedding) ask for it; every later op follows the dtype of its input.
  void set_activation_dtype(DType dtype) { activations_ = dtype; }
  DType activation_dtype(const Tensor& parameter) const { return activations_.value_or(parameter.dtype()); }
  /// The copy of a parameter that matrix products read (bf16, updated by the optimizer); the parameter itself where there is none.
  void bind_compute_copy(const Tensor& parameter, const Tensor& copy) { compute_copies_[parameter.id()] = copy; }
  Tensor compute_copy(const Tensor& parameter) const {
    const auto found = compute_copies_.find(parameter.id());
    return found == compute_copies_.end() ? parameter : found->second.reshape(parameter.shape());
  }
  bool recording() const { return recording_; }

  Tensor empty(const Shape& shape, DType dtype) { return arena_.allocate(shape, dtype); }
  Tensor zeros(const Shape& shape, DType dtype);

  /// Runs the version of an op for this device and counts its cost. An op without a CUDA version is refused there.
  template <class Cpu>
  void run(const char* op, Cost cost, Cpu&& cpu) {
    if (device().targets_cuda()) return refuse(op, "has no CUDA kernel");
    if (begin(op, cost)) {
      cpu();
      end(op);
    }
  }
  template <class Cpu, class Cuda>
  void run(const char* op, Cost cost, Cpu&& cpu, [[maybe_unused]] Cuda&& cuda) {
    if (begin(op, cost)) {
      if (device().is_cpu()) {
        cpu();
      } else {
#ifdef SACCADE_CUDA
        cuda();
#else
        throw DeviceError("this build has no CUDA kernels");
#endif
      }
      end(op);
    }
  }

  /// An op says that the engine of this device has no version of it, or none of that size. On a device this is a DeviceError; on
  /// `plan` it is noted and planning goes on, so that a plan can be asked whether its engine can run everything.
  void refuse(const char* op, const std::string& why);
  /// The first refusal on `plan`, "[wkv] heads are 512 wide, a GPU takes at most 256"; empty when there was none.
  const std::string& refusal() const { return refusal_; }

  /// An op says whether kernels for tensor cores take this activation type at its sizes. Where a CUDA engine would compute in a type that
  /// they take at other sizes, this is noted on `plan`; everywhere else nothing happens. `sizes`: "keys of 48; 32, 64 and 96 have one".
  void note_tensor_cores(const char* op, DType type, bool runs_there, const std::string& sizes);
  /// What was noted, "[delta_rule] keys of 48; 32, 64 and 96 have one", each once.
  const std::vector<std::string>& without_tensor_cores() const { return without_tensor_cores_; }

  /// Records `backward` when any input is differentiable, and marks the outputs so. Gradients of outputs are complete
  /// when it is called and are dropped after it.
  void record(std::initializer_list<Tensor> inputs, std::initializer_list<Tensor*> outputs, std::function<void(Tape&)> backward);
  void record(const std::vector<Tensor>& inputs, const std::vector<Tensor*>& outputs, std::function<void(Tape&)> backward);

  /// Activation checkpointing (arXiv:1604.06174, section 4): from now on `segment` saves only the inputs and outputs of its part, and
  /// backward runs the part once more, recorded. Gradients are the same to the bit.
  void set_recompute(bool on) { recompute_ = on; }
  bool recomputes() const { return recompute_ && recording_; }
  /// A part of the forward pass that may be run twice: it holds what it needs by value and does the same both times.
  using Part = std::function<std::vector<Tensor>()>;
  std::vector<Tensor> segment(const Part& part);

  /// Gradient that has arrived for x, in the shape of x; an empty tensor when none did.
  Tensor grad(const Tensor& x) const;
  /// Like grad, but zeros when none arrived (an output that no op used).
  Tensor grad_or_zeros(const Tensor& x);

  /// Where an op writes its contribution to the gradient of x: `tensor` in the shape of x; add when `add`, else write.
  /// `tensor` is empty when x takes no gradient.
  struct Target {
    Tensor tensor;
    bool add = false;
    explicit operator bool() const { return static_cast<bool>(tensor); }
  };
  Target grad_target(const Tensor& x);
  /// For ops whose contribution is a whole tensor already (it may be shared, as in a residual sum): takes it over or adds it.
  void add_grad(const Tensor& x, const Tensor& contribution);

  /// Gradients of x (a parameter or input, not the output of an op) go to `buffer` from now on, across steps. The first
  /// contribution after `fresh_grads` overwrites it.
  void bind_grad(const Tensor& x, const Tensor& buffer);
  void fresh_grads();

  /// Runs the record backward from a scalar loss (gradient 1 · scale). The record is empty afterwards.
  void backward(const Tensor& loss, double scale = 1.0);
  /// The same from several outputs with given gradients (tests).
  void backward(const std::vector<std::pair<Tensor, Tensor>>& outputs_and_grads);
  /// Forgets what was recorded.
  void clear();
  /// Work on the side stream during backward (kernels/engine/side_stream.h).
  SideStream& side_stream() { return *side_stream_; }

  /// Sum of the costs of everything run since the last reset.
  Cost cost() const { return cost_; }
  void reset_cost() { cost_ = {}; }

  /// Time per op, when switched on (`saccade bench --profile`). On a GPU every op is waited for, so short ones look longer; captured graphs
  /// must be off (cuda::CapturedGraph::set_enabled).
  struct OpTime {
    int64_t calls = 0;
    double seconds = 0;
    Cost cost;
  };
  void set_profiling(bool on) { profiling_ = on; }
  const std::map<std::string, OpTime>& profile() const { return profile_; }

 private:
  struct Node {
    std::vector<uint64_t> outputs;
    std::function<void(Tape&)> backward;
  };
  struct Bound {
    Tensor buffer;
    bool fresh = true;
  };

  void go_back();
  void run_again(const Part& part, const std::vector<uint64_t>& outputs);
  bool begin(const char* op, Cost cost);
  void end(const char* op);
  void add_into(const Tensor& sum, const Tensor& term);
  void copy_into(const Tensor& to, const Tensor& from);
  Tensor copy(const Tensor& x);

  Arena& arena_;
  bool recording_;
  bool recompute_ = false;
  bool keeping_ = true;  ///< off in a segment's first run, which records only which outputs are differentiable
  bool profiling_ = false;
  double started_ = 0;
  std::optional<DType> activations_;
  Cost cost_;
  Cost current_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, Tensor> grads_;
  std::unordered_map<uint64_t, Bound> bound_;
  std::unordered_map<uint64_t, Tensor> compute_copies_;
  std::map<std::string, OpTime> profile_;
  std::string refusal_;
  std::vector<std::string> without_tensor_cores_;
  std::unique_ptr<SideStream> side_stream_;
};

using GradTarget = Tape::Target;

}  // namespace saccade

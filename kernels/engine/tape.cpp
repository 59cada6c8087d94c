#include "kernels/engine/tape.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/engine/clock.h"
#include "kernels/engine/cuda_basic.h"
#include "kernels/engine/interruption.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/progress.h"
#include "kernels/engine/side_stream.h"
#include "kernels/engine/transfer.h"

namespace saccade {
namespace {

constexpr int64_t kGrain = 1 << 15;

}  // namespace

Tape::Tape(Arena& arena, bool recording) : arena_(arena), recording_(recording), side_stream_(std::make_unique<SideStream>()) {}

Tape::~Tape() = default;

bool Tape::begin(const char*, Cost cost) {
  cost_.flops += cost.flops;
  cost_.bytes += cost.bytes;
  raise_progress();
  if (device().is_plan()) {
    stop_here_if_asked();
    return false;
  }
  current_ = cost;
  if (profiling_) {
    wait(device());
    started_ = now();
  }
  return true;
}

void Tape::refuse(const char* op, const std::string& why) {
  const std::string message = std::string("[") + op + "] " + why;
  if (!device().is_plan()) throw DeviceError(message);
  if (refusal_.empty()) refusal_ = message;
}

void Tape::note_tensor_cores(const char* op, DType type, bool runs_there, const std::string& sizes) {
  if (runs_there || !device().is_plan() || !device().targets_cuda() || !tensor_core_type(type)) return;
  const std::string note = std::string("[") + op + "] " + sizes;
  if (std::find(without_tensor_cores_.begin(), without_tensor_cores_.end(), note) == without_tensor_cores_.end())
    without_tensor_cores_.push_back(note);
}

void Tape::end(const char* op) {
  if (!profiling_) return;
  wait(device());
  OpTime& time = profile_[op];
  ++time.calls;
  time.seconds += now() - started_;
  time.cost.flops += current_.flops;
  time.cost.bytes += current_.bytes;
}

Tensor Tape::zeros(const Shape& shape, DType dtype) {
  Tensor x = empty(shape, dtype);
  run(
      "zeros", {0, static_cast<double>(x.bytes())}, [&] { std::memset(x.raw(), 0, static_cast<size_t>(x.bytes())); },
      [&] { cuda::fill_bytes(stream(), x.raw(), 0, x.bytes()); });
  return x;
}

void Tape::record(std::initializer_list<Tensor> inputs, std::initializer_list<Tensor*> outputs, std::function<void(Tape&)> backward) {
  record(std::vector<Tensor>(inputs), std::vector<Tensor*>(outputs), std::move(backward));
}

void Tape::record(const std::vector<Tensor>& inputs, const std::vector<Tensor*>& outputs, std::function<void(Tape&)> backward) {
  if (!recording_) return;
  if (std::none_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x && x.differentiable(); })) return;
  Node node{{}, std::move(backward)};
  for (Tensor* y : outputs) {
    y->set_differentiable(true);
    node.outputs.push_back(y->id());
  }
  if (keeping_) nodes_.push_back(std::move(node));
}

std::vector<Tensor> Tape::segment(const Part& part) {
  if (!recomputes() || !keeping_) return part();
  keeping_ = false;
  std::vector<Tensor> outputs = part();
  keeping_ = true;
  std::vector<uint64_t> ids;
  for (const Tensor& y : outputs) ids.push_back(y.id());
  if (std::any_of(outputs.begin(), outputs.end(), [](const Tensor& y) { return y.differentiable(); }))
    nodes_.push_back({ids, [part, ids](Tape& t) { t.run_again(part, ids); }});
  return outputs;
}

/// Gradients that arrived for the outputs of the first run are those of the second's.
void Tape::run_again(const Part& part, const std::vector<uint64_t>& outputs) {
  std::vector<Node> earlier = std::exchange(nodes_, {});
  std::vector<Tensor> again = part();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (auto arrived = grads_.extract(outputs[i])) {
      arrived.key() = again[i].id();
      grads_.insert(std::move(arrived));
    }
  again.clear();
  go_back();
  nodes_ = std::move(earlier);
}

Tensor Tape::grad(const Tensor& x) const {
  const auto found = grads_.find(x.id());
  if (found == grads_.end()) return {};
  side_stream_->wait_for_writes(found->second);
  return found->second.reshape(x.shape());
}

Tensor Tape::grad_or_zeros(const Tensor& x) {
  Tensor g = grad(x);
  return g ? g : zeros(x.shape(), x.dtype());
}

GradTarget Tape::grad_target(const Tensor& x) {
  if (!x || !x.differentiable()) return {};
  if (auto bound = bound_.find(x.id()); bound != bound_.end()) {
    const bool add = !bound->second.fresh;
    bound->second.fresh = false;
    side_stream_->wait_for_writes(bound->second.buffer);
    return {bound->second.buffer.reshape(x.shape()), add};
  }
  auto [slot, fresh] = grads_.try_emplace(x.id());
  if (fresh) {
    slot->second = empty(x.shape(), x.dtype());
  } else {
    side_stream_->wait_for_reads(slot->second);
    if (!slot->second.sole_owner()) slot->second = copy(slot->second);  // somebody else still reads the shared contribution
  }
  return {slot->second.reshape(x.shape()), !fresh};
}

void Tape::add_grad(const Tensor& x, const Tensor& contribution) {
  if (!x || !x.differentiable()) return;
  if (!bound_.contains(x.id()) && !grads_.contains(x.id())) {
    grads_.emplace(x.id(), contribution);
    return;
  }
  const GradTarget target = grad_target(x);
  if (target.add) {
    add_into(target.tensor, contribution);
  } else {
    copy_into(target.tensor, contribution);
  }
}

void Tape::add_into(const Tensor& sum, const Tensor& term) {
  run(
      "add_into", {static_cast<double>(sum.size()), 3.0 * static_cast<double>(sum.bytes())},
      [&] {
        dispatch(sum.dtype(), [&](auto zero) {
          using T = decltype(zero);
          T* s = sum.data<T>();
          const T* t = term.data<T>();
          parallel_ranges(sum.size(), kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) s[i] += t[i];
          });
        });
      },
      [&] { cuda::add_into(stream(), sum, term); });
}

void Tape::copy_into(const Tensor& to, const Tensor& from) {
  run(
      "copy", {0, 2.0 * static_cast<double>(from.bytes())}, [&] { std::memcpy(to.raw(), from.raw(), static_cast<size_t>(from.bytes())); },
      [&] { cuda::convert(stream(), to, from); });
}

Tensor Tape::copy(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  copy_into(y, x);
  return y;
}

void Tape::bind_grad(const Tensor& x, const Tensor& buffer) {
  for (const Node& node : nodes_)
    if (std::find(node.outputs.begin(), node.outputs.end(), x.id()) != node.outputs.end())
      throw std::logic_error("bind_grad is for inputs, not for the output of an op");
  if (buffer.size() != x.size() || buffer.dtype() != x.dtype())
    throw std::logic_error("bind_grad: the buffer is " + to_string(buffer.shape()) + ", x is " + to_string(x.shape()));
  bound_[x.id()] = {buffer, true};
}

void Tape::fresh_grads() {
  for (auto& [id, bound] : bound_) bound.fresh = true;
}

void Tape::backward(const Tensor& loss, double scale) {
  Tensor seed = empty(loss.shape(), loss.dtype());
  run(
      "seed", {}, [&] { dispatch(loss.dtype(), [&](auto zero) { *seed.data<decltype(zero)>() = static_cast<decltype(zero)>(scale); }); },
      [&] { cuda::fill(stream(), seed, scale); });
  backward({{loss, seed}});
}

void Tape::backward(const std::vector<std::pair<Tensor, Tensor>>& outputs_and_grads) {
  const SideStreamEnd guard(*this);
  for (const auto& [y, g] : outputs_and_grads) add_grad(y, g);
  go_back();
}

void Tape::go_back() {
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    const bool reached = std::any_of(node.outputs.begin(), node.outputs.end(), [&](uint64_t id) { return grads_.contains(id); });
    if (reached) node.backward(*this);
    for (uint64_t id : node.outputs) grads_.erase(id);
  }
}

void Tape::clear() {
  nodes_.clear();
  grads_.clear();
  keeping_ = true;
}

}  // namespace saccade

#include "models/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "kernels/engine/interruption.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/linear/linear.h"
#include "models/orthogonal.h"

namespace saccade {
namespace {

constexpr int64_t kGrain = 1 << 14;

void fill(const Tensor& tensor, const std::function<double(uint64_t)>& value) {
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> host(tensor.device().is_cpu() ? 0 : static_cast<size_t>(tensor.size()));
    T* data = host.empty() ? tensor.data<T>() : host.data();
    parallel_ranges(tensor.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<T>(value(static_cast<uint64_t>(i)));
    });
    if (!host.empty()) copy_from_host(tensor, host.data());
  });
}

}  // namespace

std::string ParameterMaker::full(const std::string& name) const {
  const size_t dot = name.find('.');
  return part_.empty() || dot == std::string::npos ? name : name.substr(0, dot + 1) + part_ + name.substr(dot);
}

Random ParameterMaker::random_of(const std::string& name) const { return Random(seed_, "initialise " + full(name)); }

Tensor ParameterMaker::add(const std::string& given, const Shape& shape, bool decay, const std::function<double(uint64_t)>& value) {
  const std::string name = full(given);
  if (std::any_of(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == name; }))
    throw std::logic_error("two parameters are called " + name);
  stop_here_if_asked();
  const bool stacked = stack_.all && shape.rank() == 2;
  Parameter parameter{.name = name, .value = stacked ? stacked_rows(shape) : arena_.allocate(shape, dtype_), .decay = decay};
  if (stacked) parameter.stack = stacks_ - 1;
  if (!arena_.device().is_plan()) fill(parameter.value, value);
  parameter.value.set_differentiable(training_);
  parameters_.push_back(parameter);
  return parameter.value;
}

Tensor ParameterMaker::with_deviation(const Tensor& made, double deviation) {
  parameters_.back().deviation = deviation;
  return made;
}

ParameterMaker::Stack::Stack(ParameterMaker& make, const std::vector<int64_t>& rows, int64_t in) : make_(make) {
  if (make.stack_.all) throw std::logic_error("a stack within a stack of matrices");
  if (std::any_of(rows.begin(), rows.end(), [&](int64_t n) { return n * in % kStackAlignment != 0; })) return;
  make.stack_ = {make.arena_.allocate({std::accumulate(rows.begin(), rows.end(), int64_t{0}), in}, make.dtype_)};
  ++make.stacks_;
}

/// The next rows of the stack that is being made.
Tensor ParameterMaker::stacked_rows(const Shape& shape) {
  if (shape[1] != stack_.all.dim(1) || stack_.next + shape[0] > stack_.all.dim(0))
    throw std::logic_error("a matrix that does not fit into its stack");
  stack_.next += shape[0];
  return stack_.all.slice(stack_.next - shape[0], stack_.next);
}

std::vector<Tensor> allocate_for(const std::vector<Parameter>& parameters, Arena& arena, DType dtype,
                                 const std::function<bool(const Parameter&)>& wanted) {
  std::vector<Tensor> tensors(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& first = parameters[i];
    if (tensors[i] || !wanted(first)) continue;
    if (first.stack < 0) {
      tensors[i] = arena.allocate(first.value.shape(), dtype);
      continue;
    }
    int64_t rows = 0;
    for (const Parameter& p : parameters)
      if (p.stack == first.stack) rows += p.value.dim(0);
    const Tensor all = arena.allocate({rows, first.value.dim(1)}, dtype);
    int64_t next = 0;
    for (size_t j = i; j < parameters.size(); ++j)
      if (const Parameter& p = parameters[j]; p.stack == first.stack) {
        tensors[j] = all.slice(next, next + p.value.dim(0));
        next += p.value.dim(0);
      }
  }
  return tensors;
}

std::vector<Parameter> ParameterMaker::take() {
  if (!training_) return std::move(parameters_);
  const std::vector<Tensor> gradients = allocate_for(parameters_, arena_, dtype_, [](const Parameter&) { return true; });
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].grad = gradients[i];
    if (!arena_.device().is_plan()) fill_zero(gradients[i]);
  }
  return std::move(parameters_);
}

Tensor ParameterMaker::normal(const std::string& name, const Shape& shape, double deviation) {
  return with_deviation(
      add(name, shape, shape.rank() > 1, [random = random_of(name), deviation](uint64_t i) { return deviation * random.normal(i); }),
      deviation);
}

Tensor ParameterMaker::xavier_normal(const std::string& name, const Shape& shape) {
  return normal(name, shape, std::sqrt(2.0 / static_cast<double>(shape[0] + shape[1])));
}

Tensor ParameterMaker::uniform(const std::string& name, const Shape& shape, double bound) {
  return with_deviation(
      add(name, shape, shape.rank() > 1, [random = random_of(name), bound](uint64_t i) { return bound * (2 * random.uniform(i) - 1); }),
      bound / std::sqrt(3.0));
}

Tensor ParameterMaker::orthogonal(const std::string& name, const Shape& shape, double gain) {
  std::vector<double> matrix;
  if (!arena_.device().is_plan()) matrix = orthogonal_matrix(random_of(name), shape[0], shape[1]);
  return with_deviation(add(name, shape, true, [&](uint64_t i) { return gain * matrix[i]; }),
                        gain / std::sqrt(static_cast<double>(std::max(shape[0], shape[1]))));
}

Tensor ParameterMaker::zeros(const std::string& name, const Shape& shape) {
  return add(name, shape, true, [](uint64_t) { return 0.0; });
}

Tensor ParameterMaker::constant(const std::string& name, const Shape& shape, double value) {
  return add(name, shape, false, [value](uint64_t) { return value; });
}

Tensor ParameterMaker::drawn(const std::string& name, const Shape& shape, const std::function<double(double)>& value) {
  return add(name, shape, false, [random = random_of(name), value](uint64_t i) { return value(random.uniform(i)); });
}

Tensor ParameterMaker::formula(const std::string& name, const Shape& shape, const std::function<double(uint64_t)>& value) {
  return add(name, shape, false, value);
}

DecodingState DecodingState::empty(Arena& arena, int64_t batch, int64_t capacity) {
  DecodingState state{batch, capacity, 0, {}};
  state.length_on_device = position_on_device(arena);
  return state;
}

void DecodingState::let_lengths_differ(Arena& arena) {
  length_on_device = arena.allocate({batch}, DType::i32);
  if (!arena.device().is_plan()) fill_zero(length_on_device);
}

DecodingState DecodingState::sequence(int64_t b, int64_t tokens) const {
  DecodingState one{1, capacity, tokens, {}};
  for (const auto& layer : layers) one.layers.push_back(layer->sequences(b, 1));
  one.length_on_device = sequences_of(length_on_device, b, 1);
  return one;
}

void DecodingState::clear(int64_t b) {
  for (const auto& layer : layers)
    layer->sequences(b, 1)->each([](Tensor& x, LayerState::Kept kept) {
      if (x && kept == LayerState::Kept::sum) fill_zero(x);
    });
  if (length_on_device) fill_zero(sequences_of(length_on_device, b, 1));
}

void DecodingState::copy(Tape& tape, const DecodingState& other, const Tensor& index) {
  length = 0;
  if (length_on_device) fill_zero(length_on_device);
  for (size_t l = 0; l < layers.size(); ++l) {
    std::vector<Tensor> from;
    other.layers[l]->each([&](Tensor& x, LayerState::Kept) { from.push_back(x); });
    size_t next = 0;
    layers[l]->each([&](Tensor& x, LayerState::Kept kept) {
      const Tensor& source = from[next++];
      if (!x || x.size() == 0) return;
      const int64_t all = x.size() / x.dim(0);
      const bool by_token = kept == LayerState::Kept::tokens && x.dim(1) == capacity;
      copy_sequences(tape, source, index, x, by_token ? all / capacity * other.length : all);
    });
  }
  advance(tape, other.length);
}

Pass DecodingState::pass(int64_t n) const {
  if (length + n > capacity)
    throw UsageError("a sequence of " + std::to_string(length + n) + " tokens; decoding was begun for " + std::to_string(capacity));
  Pass pass;
  pass.position = {length, length_on_device};
  return pass;
}

void DecodingState::advance(Tape& tape, int64_t n) {
  saccade::advance(tape, {length, length_on_device}, n);
  length += n;
}

DecodingState Model::begin(Arena&, DType, int64_t, int64_t) const { throw UsageError("this architecture does not decode incrementally"); }

Tensor Model::extend(Tape&, const Tensor&, DecodingState&) const { throw std::logic_error("extend without begin"); }

Tensor Model::loss(Tape& tape, const Tensor& tokens, const Tensor& targets, Probe* probe, Tensor* token_losses,
                   const CrossEntropyOptions& options) const {
  const CrossEntropy result = linear_cross_entropy(tape, hidden(tape, tokens, probe), output_weight(), targets, options);
  if (token_losses) *token_losses = result.tokens;
  return result.mean;
}

Tensor Model::logits(Tape& tape, const Tensor& tokens, Probe* probe) const {
  return linear(tape, hidden(tape, tokens, probe), output_weight());
}

Parameter& Model::parameter(const std::string& name) {
  for (Parameter& p : parameters_)
    if (p.name == name) return p;
  throw std::logic_error("the model has no parameter " + name);
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& p : parameters_) count += p.value.size();
  return count;
}

void Model::bind_gradients(Tape& tape) const {
  for (const Parameter& p : parameters_)
    if (p.grad) tape.bind_grad(p.value, p.grad);
}

}  // namespace saccade

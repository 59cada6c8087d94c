#include "tests/support/gradient.h"

namespace saccade::test {
namespace {

struct Result {
  std::vector<Array> outputs, grads;
};

std::vector<Tensor> make_inputs(const std::vector<Array>& inputs, DType dtype, Arena& arena) {
  std::vector<Tensor> tensors;
  for (const Array& input : inputs) {
    tensors.push_back(to_tensor(input, dtype, arena));
    if (!input.integer) tensors.back().set_differentiable(true);
  }
  return tensors;
}

Array upstream(const Shape& shape, size_t output) { return random_array(shape, 1000 + output); }

/// Forward, and backward `passes` times into the same gradient buffers.
Result run(const Op& op, const std::vector<Array>& inputs, DType dtype, int passes) {
  Arena::set_poison(true);
  Arena arena(Device::cpu());
  Tape tape(arena, passes > 0);
  const std::vector<Tensor> x = make_inputs(inputs, dtype, arena);
  std::vector<Tensor> buffers(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].differentiable()) {
      buffers[i] = arena.allocate(x[i].shape(), dtype);
      tape.bind_grad(x[i], buffers[i]);
    }
  Result result;
  for (int pass = 0; pass < std::max(passes, 1); ++pass) {
    const std::vector<Tensor> y = op(tape, x);
    result.outputs.clear();
    std::vector<std::pair<Tensor, Tensor>> seeds;
    for (size_t i = 0; i < y.size(); ++i) {
      result.outputs.push_back(to_array(y[i]));
      if (y[i].differentiable()) seeds.emplace_back(y[i], to_tensor(upstream(y[i].shape(), i), dtype, arena));
    }
    if (passes > 0) tape.backward(seeds);
  }
  for (size_t i = 0; i < x.size(); ++i) result.grads.push_back(buffers[i] && passes > 0 ? to_array(buffers[i]) : Array{});
  Arena::set_poison(false);
  return result;
}

double loss(const Op& op, const std::vector<Array>& inputs, const std::vector<bool>& graded) {
  Arena arena(Device::cpu());
  Tape tape(arena, false);
  const std::vector<Tensor> y = op(tape, make_inputs(inputs, DType::f64, arena));
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (!graded[i]) continue;
    const Array a = to_array(y[i]), u = upstream(y[i].shape(), i);
    for (size_t j = 0; j < a.values.size(); ++j) sum += a.values[j] * u.values[j];
  }
  return sum;
}

std::vector<bool> graded_outputs(const Op& op, const std::vector<Array>& inputs) {
  Arena arena(Device::cpu());
  Tape tape(arena, true);
  std::vector<bool> graded;
  for (const Tensor& y : op(tape, make_inputs(inputs, DType::f64, arena))) graded.push_back(y.differentiable());
  return graded;
}

}  // namespace

QString check_gradient(const Op& op, const std::vector<Array>& inputs, double tolerance, double step) {
  const std::vector<bool> graded = graded_outputs(op, inputs);
  const Result once = run(op, inputs, DType::f64, 1), twice = run(op, inputs, DType::f64, 2);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].integer) continue;
    Array numeric{inputs[i].shape, std::vector<double>(inputs[i].values.size()), false};
    for (size_t j = 0; j < numeric.values.size(); ++j) {
      std::vector<Array> moved = inputs;
      moved[i].values[j] = inputs[i].values[j] + step;
      const double up = loss(op, moved, graded);
      moved[i].values[j] = inputs[i].values[j] - step;
      numeric.values[j] = (up - loss(op, moved, graded)) / (2 * step);
    }
    if (QString d = difference(once.grads[i], numeric, tolerance, QString("gradient of input %1").arg(i)); !d.isEmpty()) return d;
    Array doubled = once.grads[i];
    for (double& g : doubled.values) g *= 2;
    if (QString d = difference(twice.grads[i], doubled, 1e-12, QString("accumulated gradient of input %1").arg(i)); !d.isEmpty()) return d;
  }
  return {};
}

QString check_float(const Op& op, const std::vector<Array>& inputs, double tolerance) {
  const Result exact = run(op, inputs, DType::f64, 1), single = run(op, inputs, DType::f32, 1);
  for (size_t i = 0; i < exact.outputs.size(); ++i)
    if (QString d = difference(single.outputs[i], exact.outputs[i], tolerance, QString("float output %1").arg(i)); !d.isEmpty()) return d;
  for (size_t i = 0; i < exact.grads.size(); ++i)
    if (QString d = difference(single.grads[i], exact.grads[i], tolerance, QString("float gradient of input %1").arg(i)); !d.isEmpty())
      return d;
  return {};
}

}  // namespace saccade::test

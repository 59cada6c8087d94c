#pragma once
// For programs that compare an op on CUDA with the same op on the CPU in double, on the same inputs.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/engine/arena.h"
#include "kernels/engine/random.h"
#include "kernels/engine/tape.h"
#include "kernels/engine/transfer.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"

namespace saccade::test {

/// Values of one input. Parameters are f32 on the GPU whatever the activations are; matrices get a bf16 copy for products.
struct Input {
  enum class Kind { activation, parameter, integer } kind = Kind::activation;
  Shape shape;
  std::vector<double> values;
};

struct OpCase {
  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Tensor>(Tape&, const std::vector<Tensor>&)> op;  ///< outputs; differentiable ones get random gradients
  /// What outputs and gradients may be off by in bf16. A computation in PyTorch that is not ours reaches 5e-3 and 6e-3 with one rounding or
  /// two behind each other (norms, convolutions, scans, attention), 7e-3 with the delta rule (tests/golden/bf16_checks.py and the table
  /// tests/golden/data/bf16_reference.json). A case that says otherwise has twice what is reached for its inputs.
  double output_limit = 1e-2, gradient_limit = 2e-2;
  bool unrecorded = false;  ///< whether outputs are compared without a record, too
};

inline Input activation(const Shape& shape, uint64_t seed, double scale = 1) {
  Input x{Input::Kind::activation, shape, {}};
  const Random random(seed, "values");
  for (int64_t i = 0; i < shape.size(); ++i) x.values.push_back(scale * random.normal(static_cast<uint64_t>(i)));
  return x;
}
inline Input parameter(const Shape& shape, uint64_t seed, double scale = 1) {
  Input x = activation(shape, seed, scale);
  x.kind = Input::Kind::parameter;
  return x;
}
inline Input integers(const Shape& shape, uint64_t seed, uint64_t below) {
  Input x{Input::Kind::integer, shape, {}};
  const Random random(seed, "integers");
  for (int64_t i = 0; i < shape.size(); ++i) x.values.push_back(static_cast<double>(random.below(below, static_cast<uint64_t>(i))));
  return x;
}

/// Outputs, then gradients of the inputs, as doubles, where they are compared.
struct OpValues {
  std::vector<std::vector<double>> values;
  std::vector<std::string> names;
  int64_t peak = 0;
};

inline double to_bf16_and_back(double x) {
  float f = static_cast<float>(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&f, &bits, 4);
  return static_cast<double>(f);
}

/// Whether input i stands behind the one before it in one tensor, as matrices of a stack of a model do (ParameterMaker::Stack).
inline bool is_stacked(const std::vector<Input>& inputs, size_t i) {
  if (i == 0) return false;
  const Input &a = inputs[i - 1], &b = inputs[i];
  const auto matrix = [](const Input& in) {
    return in.kind == Input::Kind::parameter && in.shape.rank() == 2 && in.shape.size() % 128 == 0;
  };
  return matrix(a) && matrix(b) && a.shape[1] == b.shape[1];
}

/// A tensor for every input that `type` gives one; where it is none, an empty one.
inline std::vector<Tensor> allocate_inputs(const std::vector<Input>& inputs, Arena& arena,
                                           const std::function<std::optional<DType>(const Input&)>& type) {
  std::vector<Tensor> all(inputs.size());
  for (size_t i = 0; i < inputs.size();) {
    size_t end = i + 1;
    int64_t rows = inputs[i].shape[0];
    for (; end < inputs.size() && is_stacked(inputs, end); ++end) rows += inputs[end].shape[0];
    if (const std::optional<DType> dtype = type(inputs[i]); dtype && end == i + 1) {
      all[i] = arena.allocate(inputs[i].shape, *dtype);
    } else if (dtype) {
      const Tensor stack = arena.allocate({rows, inputs[i].shape[1]}, *dtype);
      for (int64_t next = 0; i < end; next += inputs[i++].shape[0]) all[i] = stack.slice(next, next + inputs[i].shape[0]);
    }
    i = end;
  }
  return all;
}

/// `dtype`: f64 on the CPU, f32 or bf16 on CUDA. `adding`: gradients start at one and are added to. Without `recording` outputs only.
inline OpValues run_case(const OpCase& c, Device device, DType dtype, bool adding, bool recording = true) {
  Arena arena(device);
  Tape tape(arena, recording);
  const DType exact = accumulation_dtype(dtype);
  const bool plan = device.is_plan(), read = !plan && compares();
  const auto put = [&](const Tensor& t, const std::vector<double>& values) {
    if (!plan) from_doubles(t, values);
  };
  if (dtype == DType::bf16) tape.set_activation_dtype(DType::bf16);
  const auto type_of = [&](const Input& in) -> std::optional<DType> {
    return in.kind == Input::Kind::integer ? DType::i32 : in.kind == Input::Kind::parameter ? exact : dtype;
  };
  std::vector<Tensor> x = allocate_inputs(c.inputs, arena, type_of);
  for (size_t i = 0; i < x.size(); ++i) put(x[i], c.inputs[i].values);
  const std::vector<Tensor> grads = allocate_inputs(
      c.inputs, arena, [&](const Input& in) { return in.kind == Input::Kind::integer ? std::optional<DType>() : type_of(in); });
  for (size_t i = 0; i < x.size(); ++i) {
    if (!grads[i] || !recording) continue;
    x[i].set_differentiable(true);
    tape.bind_grad(x[i], grads[i]);
    if (!adding) continue;
    put(grads[i], std::vector<double>(c.inputs[i].values.size(), 1.0));
    tape.grad_target(x[i]);  // the first contribution overwrites; this one counts as it
  }
  const std::vector<Tensor> copies = allocate_inputs(c.inputs, arena, [&](const Input& in) {
    const bool wanted = in.kind == Input::Kind::parameter && dtype == DType::bf16 && in.shape.rank() == 2;
    return wanted ? std::optional(DType::bf16) : std::nullopt;
  });
  for (size_t i = 0; i < x.size(); ++i) {
    if (!copies[i]) continue;
    put(copies[i], c.inputs[i].values);
    tape.bind_compute_copy(x[i], copies[i]);
  }
  OpValues out;
  arena.reset_peak();
  {
    const std::vector<Tensor> y = c.op(tape, x);
    std::vector<std::pair<Tensor, Tensor>> seeds;
    for (size_t i = 0; i < y.size(); ++i) {
      if (read) out.values.push_back(to_doubles(y[i])), out.names.push_back("output " + std::to_string(i));
      if (!y[i].differentiable()) continue;
      const Tensor seed = arena.allocate(y[i].shape(), y[i].dtype());
      std::vector<double> values = activation(y[i].shape(), 1000 + i).values;
      for (double& v : values) v = to_bf16_and_back(v);
      put(seed, values);
      seeds.emplace_back(y[i], seed);
    }
    if (recording) tape.backward(seeds);
  }
  out.peak = arena.peak_extent();
  if (!recording) return out;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i] && read) out.values.push_back(to_doubles(grads[i])), out.names.push_back("gradient " + std::to_string(i));
  return out;
}

/// Largest difference over the largest value; infinite where only one of the two is finite.
inline double difference(const std::vector<double>& a, const std::vector<double>& truth) {
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (std::isinf(truth[i]) && a[i] == truth[i]) continue;
    if (std::isnan(truth[i]) && std::isnan(a[i])) continue;  // poisoned memory that neither writes: no gradient flows
    if (!std::isfinite(a[i]) || !std::isfinite(truth[i])) return INFINITY;
    worst = std::max(worst, std::abs(a[i] - truth[i]));
    largest = std::max(largest, std::abs(truth[i]));
  }
  return worst / largest;
}

struct Worst {
  double output = 0, gradient = 0;
};

/// What is wrong with a case in one type, or nothing; how far it is off goes to `off`.
inline std::string compare_case(const OpCase& c, DType dtype, bool adding, Device device, Worst& off) {
  const OpValues truth = run_case(c, Device::cpu(), DType::f64, adding), once = run_case(c, device, dtype, adding),
                 again = run_case(c, device, dtype, adding), plan = run_case(c, Device::plan(Engine::cuda), dtype, adding),
                 unrecorded = c.unrecorded ? run_case(c, device, dtype, adding, false) : OpValues();
  std::string problem;
  for (size_t i = 0; i < unrecorded.values.size(); ++i) {
    const double d = difference(unrecorded.values[i], truth.values[i]);
    off.output = std::max(off.output, d);
    if (!(d <= (dtype == DType::f32 ? 2e-5 : c.output_limit))) problem += " " + truth.names[i] + " is off where nothing is recorded";
  }
  for (size_t i = 0; i < truth.values.size(); ++i) {
    const double d = difference(once.values[i], truth.values[i]);
    const bool is_output = truth.names[i][0] == 'o';
    double& worst = is_output ? off.output : off.gradient;
    worst = std::max(worst, d);
    const double limit = dtype == DType::f32 ? 2e-5 : is_output ? c.output_limit : c.gradient_limit;
    if (!(d <= limit)) {
      char text[96];
      std::snprintf(text, sizeof text, " %s off by %.2g", truth.names[i].c_str(), d);
      problem += text;
    }
    if (std::memcmp(once.values[i].data(), again.values[i].data(), once.values[i].size() * sizeof(double)) != 0)
      problem += " " + truth.names[i] + " differs between two runs";
  }
  if (plan.peak != once.peak) problem += " plan peaks at " + std::to_string(plan.peak) + ", the run at " + std::to_string(once.peak);
  return problem;
}

/// Runs a case in one type; prints a line when it fails (or SACCADE_TEST_VERBOSE is set); returns whether it passed.
inline bool check_case(const OpCase& given, DType dtype, bool adding, Device device, Worst& worst) {
  OpCase c = given;
  for (Input& in : c.inputs)
    if (in.kind != Input::Kind::integer)
      for (double& v : in.values) v = dtype == DType::bf16 ? to_bf16_and_back(v) : static_cast<double>(static_cast<float>(v));
  std::string problem;
  Worst off;
  const auto begin = std::chrono::steady_clock::now();
  try {
    Arena::set_poison(true);
    if (compares())
      problem = compare_case(c, dtype, adding, device, off);
    else
      run_case(c, device, dtype, adding);
  } catch (const std::exception& e) {
    problem = std::string(" ") + std::string(e.what()).substr(0, 300);
  }
  Arena::set_poison(false);
  if (!problem.empty() || std::getenv("SACCADE_TEST_VERBOSE"))
    std::printf("%-38s %-4s %-2s %8.1e %8.1e %5.1f s  %s%s\n", given.name.c_str(), to_string(dtype), adding ? "+=" : "=", off.output,
                off.gradient, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                problem.empty() ? "ok" : "FAILED:", problem.c_str());
  worst = {std::max(worst.output, off.output), std::max(worst.gradient, off.gradient)};
  return problem.empty();
}

/// The cases whose name holds `only` in f32 and bf16, writing and adding (short: writing in f32, adding in bf16). Returns how many rows
/// failed.
inline int check_cases(std::vector<OpCase> cases, Device device, const std::string& only = "") {
  std::erase_if(cases, [&](const OpCase& c) { return c.name.find(only) == std::string::npos; });
  int failed = 0;
  for (DType dtype : {DType::f32, DType::bf16}) {
    Worst worst;
    for (size_t i = 0; i < cases.size(); ++i)
      for (bool adding : {false, true})
        if (in_shard(i) && !(short_cases() && adding != (dtype == DType::bf16)))
          failed += check_case(cases[i], dtype, adding, device, worst) ? 0 : 1;
    std::printf("%s: %zu cases, worst output %.1e, worst gradient %.1e\n", to_string(dtype), cases.size(), worst.output, worst.gradient);
  }
  std::printf("%d of %zu rows failed\n", failed, cases.size() * 4);
  return failed;
}

/// What a check program does: `program [name]` compares the cases whose name holds the word on the first GPU, and `more` besides, which
/// returns how much failed; `program --bench [name]` times. Exit code 77 without a GPU, saying why.
inline int check_main(int argc, char** argv, const std::function<std::vector<OpCase>()>& cases,
                      const std::function<void(Device, const std::string& only)>& bench = {}, const std::function<int(Device)>& more = {}) {
  const Device device = Device::cuda(first_gpu().index);
  const std::string word = argc > 1 ? argv[1] : "";
  if (bench && word == "--bench") {
    bench(device, argc > 2 ? argv[2] : "");
    return 0;
  }
  const int failed = check_cases(cases(), device, word) + (more ? more(device) : 0);
  return failed == 0 ? 0 : 1;
}

}  // namespace saccade::test

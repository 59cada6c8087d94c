#pragma once
// Times a case of op_table.h in bf16, for the --bench of check programs.
#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

namespace saccade::test {

/// The case is of one sequence; its inputs are repeated `batch` times. Prints a line; FLOPs and bytes are what the op says it does
/// at least. The first output is taken back.
inline void bench_case(const OpCase& one, int64_t batch, Device device) {
  Arena arena(device);
  std::vector<Tensor> x;
  for (const Input& in : one.inputs) {
    Shape shape{batch * in.shape[0]};
    for (int i = 1; i < in.shape.rank(); ++i) shape.push_back(in.shape[i]);
    std::vector<double> values;
    for (int64_t b = 0; b < batch; ++b) values.insert(values.end(), in.values.begin(), in.values.end());
    x.push_back(arena.allocate(shape, in.kind == Input::Kind::activation ? DType::bf16 : DType::f32));
    from_doubles(x.back(), values);
    x.back().set_differentiable(true);
  }
  Cost forward, backward;
  {
    Tape tape(arena, true);
    const Tensor y = one.op(tape, x)[0];
    forward = tape.cost();
    tape.reset_cost();
    tape.backward({{y, y}});
    backward = tape.cost();
  }
  arena.reset_peak();
  print_times(one.name + " x" + std::to_string(batch), time_op(arena, [&](Tape& t) { return one.op(t, x)[0]; }), forward, backward);
}

}  // namespace saccade::test

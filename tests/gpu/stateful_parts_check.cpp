// What stands around the recurrences of the stateful architectures on CUDA against the CPU in double. Needs a GPU; without one it
// ends with code 77 (skipped) and says so. An argument picks the cases whose name holds it; `--bench [name]` measures.
#include <numeric>

#include "kernels/ops/causal_conv/causal_conv.h"
#include "kernels/ops/gated_norm/gated_norm.h"
#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/linear_split/linear_split.h"
#include "kernels/ops/log_decay/log_decay.h"
#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"
#include "kernels/ops/split/split.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "tests/gpu/op_table.h"
#include "tests/gpu/stateful_parts_bench.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

std::string label(const char* op, const Shape& shape) { return op + (" " + to_string(shape)); }

/// The copy of an input that an op may change, as its output: decoding moves states on in place, but what a case is given stays.
Tensor copy_of(Tape& tape, const Tensor& x) { return add(tape, x, tape.zeros(x.shape(), x.dtype())); }

void add_convolutions(std::vector<OpCase>& cases) {
  const auto conv_case = [&](const Shape& shape, int64_t taps, bool bias, Activation f) {
    OpCase c{label("causal_conv", shape) + " W" + std::to_string(taps), {}, {}};
    c.inputs = {activation(shape, 1), parameter({shape[2], taps}, 2, 0.5)};
    if (bias) c.inputs.push_back(parameter({shape[2]}, 3));
    c.op = [=](Tape& t, const Tensors& x) { return Tensors{causal_conv(t, x[0], x[1], bias ? x[2] : Tensor(), f)}; };
    cases.push_back(c);
  };
  for (int64_t taps : {1, 2, 3, 4, 5, 64})
    for (const Shape& shape : {Shape{1, 1, 1}, {2, 37, 17}, {3, 131, 24}, {1, 16, 8}})
      conv_case(shape, taps, taps % 2 == 0, Activation::silu);
  conv_case({2, 300, 776}, 4, false, Activation::silu);
  conv_case({2, 257, 136}, 3, true, Activation::none);
  for (const std::vector<int64_t>& widths : {std::vector<int64_t>{3, 5, 1}, {24, 8, 8}, {10, 6}})
    for (int64_t taps : {3, 4, 7})
      for (size_t used : {size_t{1}, widths.size()}) {
        const int64_t n = std::accumulate(widths.begin(), widths.end(), int64_t{0});
        cases.push_back({label("causal_conv_pieces", {2, 131, n}) + " W" + std::to_string(taps),
                         {activation({2, 131, n}, 1), parameter({n, taps}, 2, 0.5), parameter({n}, 3)},
                         [=](Tape& t, const Tensors& x) {
                           const Tensors y = causal_conv_pieces(t, x[0], x[1], x[2], Activation::silu, widths);
                           return Tensors(y.end() - static_cast<std::ptrdiff_t>(used), y.end());
                         }});
      }
  for (int64_t taps : {1, 3, 4, 7})
    for (const Shape& shape : {Shape{2, 1, 16}, {3, 2, 7}, {1, 150, 40}}) {
      OpCase c{label("causal_conv_next", shape) + " W" + std::to_string(taps), {}, {}};
      c.inputs = {activation(shape, 1), parameter({shape[2], taps}, 2, 0.5), parameter({shape[2]}, 3),
                  activation({shape[0], taps - 1, shape[2]}, 4)};
      c.op = [](Tape& t, const Tensors& x) {
        const Tensor history = copy_of(t, x[3]);
        return Tensors{causal_conv_next(t, x[0], x[1], x[2], Activation::silu, history), history};
      };
      if (taps > 1) cases.push_back(c);
    }
}

/// Not one number alone: of that, gradients through a norm are zero by mathematics.
void add_norms(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{1, 3}, {3, 7}, {5, 24}, {301, 64}, {77, 96}, {50, 192}, {33, 257}, {9, 520}, {7, 1536}, {3, 4096}}) {
    const int64_t n = shape[1];
    cases.push_back(
        {label("l2_norm", shape), {activation(shape, 1)}, [](Tape& t, const Tensors& x) { return Tensors{l2_norm(t, x[0], 1e-6)}; }});
    cases.push_back({label("rms_norm_before_gate", shape),
                     {activation(shape, 1), activation(shape, 2, 2), parameter({n}, 3)},
                     [](Tape& t, const Tensors& x) { return Tensors{rms_norm_before_gate(t, x[0], x[1], x[2], 1e-6)}; }});
    cases.push_back({label("unit_norm", shape), {activation(shape, 1)}, [](Tape& t, const Tensors& x) {
                       return Tensors{unit_norm(t, x[0], {}, 1e-12)};
                     }});
  }
  for (const Shape& shape :
       {Shape{1, 1, 3}, {13, 3, 5}, {300, 12, 64}, {41, 4, 32}, {29, 2, 96}, {17, 3, 200}, {6, 1, 1536}, {5, 2, 1030}}) {
    const int64_t groups = shape[1], n = shape[1] * shape[2];
    const Shape flat{shape[0], n};
    cases.push_back({label("rms_norm_after_gate", shape),
                     {activation(flat, 1), activation(flat, 2, 2), parameter({n}, 3)},
                     [=](Tape& t, const Tensors& x) { return Tensors{rms_norm_after_gate(t, x[0], x[1], x[2], groups, 1e-5)}; }});
    cases.push_back({label("group_norm", shape),
                     {activation(flat, 1), parameter({n}, 2), parameter({n}, 3)},
                     [=](Tape& t, const Tensors& x) { return Tensors{group_norm(t, x[0], x[1], x[2], groups, 64e-5)}; }});
    cases.push_back({label("unit_norm scaled", shape),
                     {activation({shape[0], 1, groups, shape[2]}, 1), parameter({groups, shape[2]}, 2)},
                     [](Tape& t, const Tensors& x) { return Tensors{unit_norm(t, x[0], x[1], 1e-12)}; }});
    cases.push_back({label("unit_norm below the floor", shape),
                     {activation({shape[0], 1, groups, shape[2]}, 1), parameter({groups, shape[2]}, 2)},
                     [](Tape& t, const Tensors& x) { return Tensors{unit_norm(t, x[0], x[1], 1e4)}; }});
  }
}

void add_shifts(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{1, 1, 1}, {2, 17, 7}, {3, 131, 24}, {2, 300, 136}, {1, 128, 8}})
    for (int64_t blends : {1, 2, 6})
      for (ShiftWeight of : {ShiftWeight::previous, ShiftWeight::current}) {
        OpCase c{label("token_shift", shape) + " x" + std::to_string(blends), {activation(shape, 1)}, {}};
        for (int64_t i = 0; i < blends; ++i) c.inputs.push_back(parameter({shape[2]}, 2 + static_cast<uint64_t>(i)));
        c.op = [of](Tape& t, const Tensors& x) { return token_shift(t, x[0], {}, Tensors(x.begin() + 1, x.end()), of); };
        cases.push_back(c);
        c.name += " by token";
        for (size_t i = 1; i < c.inputs.size(); ++i) c.inputs[i] = activation(shape, 20 + i);
        cases.push_back(c);
      }
  cases.push_back({"token_shift after tokens",
                   {activation({3, 5, 24}, 1), parameter({24}, 2), activation({3, 5, 24}, 3), activation({3, 2, 24}, 4)},
                   [](Tape& t, const Tensors& x) {
                     Tensors y = token_shift(t, x[0], last_token(t, x[3]), {x[1], x[2]}, ShiftWeight::previous);
                     y.push_back(last_token(t, y[0]));
                     return y;
                   }});
  // Only one of the blends is used.
  cases.push_back(
      {"token_shift half used", {activation({2, 40, 12}, 1), parameter({12}, 2), parameter({12}, 3)}, [](Tape& t, const Tensors& x) {
         return Tensors{token_shift(t, x[0], {}, {x[1], x[2]}, ShiftWeight::current)[1]};
       }});
}

void add_rwkv7(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{1, 1, 1}, {37, 3, 5}, {300, 12, 64}, {131, 4, 32}, {9, 2, 200}}) {
    const int64_t n = shape[1] * shape[2];
    const Shape flat{1, shape[0], n};
    const auto inputs = [&](int count) {
      std::vector<Input> x;
      for (int i = 0; i < count; ++i) x.push_back(activation(flat, 1 + static_cast<uint64_t>(i)));
      return x;
    };
    OpCase gates{label("rwkv7_gates", shape), inputs(4), {}}, output{label("rwkv7_output", shape), inputs(5), {}},
        blend{label("blend_values", shape), inputs(3), {}};
    gates.inputs.push_back(parameter({n}, 9));
    gates.op = [](Tape& t, const Tensors& x) {
      const Rwkv7Gates g = rwkv7_gates(t, x[0], x[1], x[2], x[3], x[4]);
      return Tensors{g.log_w, g.k, g.a, g.b};
    };
    output.inputs.push_back(parameter({shape[1], shape[2]}, 9));
    output.op = [](Tape& t, const Tensors& x) { return Tensors{rwkv7_output(t, x[0], x[1], x[2], x[3], x[4], x[5])}; };
    blend.op = [](Tape& t, const Tensors& x) { return Tensors{blend_values(t, x[0], x[1], x[2])}; };
    for (const OpCase& c : {gates, output, blend}) cases.push_back(c);
  }
}

void add_gates(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{1, 1, 1}, {2, 37, 3}, {1, 300, 6}, {2, 129, 40}}) {
    cases.push_back({label("log_decay", shape),
                     {activation(shape, 1, 4), parameter({shape[2]}, 2), parameter({shape[2]}, 3)},
                     [](Tape& t, const Tensors& x) { return Tensors{log_decay(t, x[0], x[1], x[2])}; }});
    cases.push_back({label("sigmoid_gate", shape), {activation(shape, 1, 4)}, [](Tape& t, const Tensors& x) {
                       return Tensors{sigmoid_gate(t, x[0])};
                     }});
  }
}

void add_pieces(std::vector<OpCase>& cases) {
  for (const std::vector<int64_t>& widths : {std::vector<int64_t>{1}, {3, 5}, {64, 16, 16}, {24, 8, 40, 8}, {1536, 128, 128}}) {
    int64_t n = 0;
    for (int64_t w : widths) n += w;
    for (int64_t rows : {1, 37}) {
      const Shape shape{1, rows, n};
      cases.push_back({label("split", shape), {activation(shape, 1)}, [=](Tape& t, const Tensors& x) { return split(t, x[0], widths); }});
      cases.push_back({label("split partly used", shape), {activation(shape, 1)}, [=](Tape& t, const Tensors& x) {
                         return Tensors{split(t, x[0], widths).back()};
                       }});
      cases.push_back({label("linear_split", shape),
                       {activation({1, rows, 24}, 1), parameter({n, 24}, 2, 0.2)},
                       [=](Tape& t, const Tensors& x) { return linear_split(t, x[0], x[1], widths); }});
    }
  }
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_convolutions(all);
  add_norms(all);
  add_shifts(all);
  add_rwkv7(all);
  add_gates(all);
  add_pieces(all);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return check_main(argc, argv, cases, [](Device, const std::string& only) { stateful_parts_bench(only); });
}

// Taylor attention on CUDA against the CPU in double: `taylor_attention_check [name]`; `taylor_attention_check --bench` measures.
// Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include "kernels/ops/taylor_attention/taylor_attention.h"
#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Sizes {
  int64_t batch, length, heads, d, values, segment = taylor_segment(length);
};

std::string text(const Sizes& s) {
  return "taylor " + std::to_string(s.batch) + "x" + std::to_string(s.length) + " H" + std::to_string(s.heads) + " d" +
         std::to_string(s.d) + " V" + std::to_string(s.values) + (s.length > s.segment ? " segments of " + std::to_string(s.segment) : "");
}

std::vector<Input> inputs_of(const Sizes& s) {
  const Shape keys{s.batch, s.length, s.heads, s.d};
  return {activation(keys, 1), activation(keys, 2), activation({s.batch, s.length, s.heads, s.values}, 3)};
}

void add_passes(std::vector<OpCase>& cases) {
  const Sizes all[] = {{2, 1, 2, 16, 64},         {2, 37, 3, 16, 32},       {1, 64, 2, 16, 64},       {2, 131, 3, 16, 64},
                       {2, 131, 2, 16, 32},       {2, 100, 3, 12, 20},      {1, 131, 2, 8, 130},      {1, 70, 1, 80, 16},
                       {1, 513, 2, 16, 64},       {1, 2048, 2, 16, 64},     {1, 128, 2, 16, 64, 128}, {2, 129, 2, 16, 64, 128},
                       {1, 129, 3, 16, 32, 128},  {2, 293, 3, 16, 64, 128}, {1, 293, 2, 16, 32, 128}, {1, 512, 2, 16, 64, 128},
                       {1, 1000, 2, 16, 64, 384}, {1, 2049, 1, 16, 64},     {1, 300, 1, 12, 64, 128}, {1, 4133, 1, 16, 32}};
  for (const Sizes& s : all)
    cases.push_back({text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       Tensor q = x[0], k = x[1];
                       if (s.length == 1) q.set_differentiable(false), k.set_differentiable(false);  // the gradients are zero
                       return Tensors{taylor_attention(t, q, k, x[2], {}, s.segment)};
                     }});
}

/// From a state that two earlier tokens made, piece by piece.
void add_decoding(std::vector<OpCase>& cases) {
  for (const Sizes& s : {Sizes{2, 1, 3, 16, 64}, {2, 3, 2, 16, 32}, {1, 5, 2, 7, 40}})
    cases.push_back({"decode " + text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       Tensor q = x[0], k = x[1], v = x[2];
                       for (Tensor* input : {&q, &k, &v}) input->set_differentiable(false);
                       const Tensor state = t.zeros({s.batch, s.heads, taylor_features(s.d), s.values + 1}, accumulation_dtype(v.dtype()));
                       Tensors out;
                       for (int piece = 0; piece < 3; ++piece) out.push_back(taylor_attention(t, q, k, v, state));
                       out.push_back(state);
                       return out;
                     }});
}

/// Calls behind each other that hand on one state, with so many tokens each.
struct Calls {
  int64_t batch, heads, d, values;
  std::vector<int64_t> lengths;
  int64_t segment = 0;
};

std::string text(const Calls& c) {
  std::string lengths;
  for (int64_t length : c.lengths) lengths += (lengths.empty() ? "" : "+") + std::to_string(length);
  return "prompt " + std::to_string(c.batch) + "x" + lengths + " H" + std::to_string(c.heads) + " d" + std::to_string(c.d) + " V" +
         std::to_string(c.values) + (c.segment > 0 ? " segments of " + std::to_string(c.segment) : "");
}

/// q, k, v of every call.
std::vector<Input> inputs_of(const Calls& c) {
  std::vector<Input> all;
  for (int64_t length : c.lengths)
    for (const int64_t width : {c.d, c.d, c.values}) all.push_back(activation({c.batch, length, c.heads, width}, 1 + all.size()));
  return all;
}

/// The results of all calls, then the state behind the last one.
Tensors run_calls(Tape& t, const Calls& c, Tensors x) {
  for (Tensor& input : x) input.set_differentiable(false);
  const Tensor state = t.zeros({c.batch, c.heads, taylor_features(c.d), c.values + 1}, accumulation_dtype(x[0].dtype()));
  Tensors out;
  for (size_t i = 0; i < x.size(); i += 3) out.push_back(taylor_attention(t, x[i], x[i + 1], x[i + 2], state, c.segment));
  out.push_back(state);
  return out;
}

/// Prompts in one call, which goes by segments from 33 tokens on, in several, and single tokens behind them.
void add_prompts(std::vector<OpCase>& cases) {
  const Calls all[] = {{2, 3, 16, 64, {32}},
                       {2, 3, 16, 64, {33}},
                       {2, 3, 16, 32, {64}},
                       {1, 2, 16, 64, {100}},
                       {2, 2, 16, 64, {257}},
                       {1, 3, 16, 32, {1000}},
                       {1, 2, 16, 64, {2048}},
                       {2, 3, 16, 64, {293}, 128},
                       {1, 2, 16, 32, {512}, 128},
                       {1, 2, 16, 64, {1300}, 128},  // more segments than are read ahead
                       {2, 2, 16, 64, {20, 13}},
                       {2, 3, 16, 64, {3, 33, 1, 1, 1}},
                       {1, 2, 16, 32, {50, 50, 1, 1}},
                       {1, 2, 16, 64, {33, 64, 100, 1, 1}},
                       {1, 3, 16, 64, {512, 488, 1, 1, 1}},
                       {2, 2, 16, 32, {513, 487, 40, 5, 1}},
                       {1, 2, 16, 64, {2048, 1, 1}},
                       {1, 2, 16, 64, {700, 700, 648, 1, 1}},
                       {2, 3, 16, 64, {129, 256, 33, 1}, 128},
                       {1, 70, 16, 64, {300, 1}},  // more tiles than multiprocessors
                       {1, 2, 12, 20, {70, 40, 1}},
                       {1, 1, 16, 48, {70, 1}}};
  for (const Calls& c : all) cases.push_back({text(c), inputs_of(c), [c](Tape& t, const Tensors& x) { return run_calls(t, c, x); }});
}

void add_weights(std::vector<OpCase>& cases) {
  for (const Sizes& s : {Sizes{2, 131, 2, 16, 8}, {2, 1, 2, 7, 8}})
    cases.push_back({"weights " + text(s), inputs_of(s), [](Tape& t, const Tensors& x) {
                       return Tensors{taylor_weights(t, x[0], x[1], 1), taylor_weights(t, x[0], x[1], {0, 2})};
                     }});
}

void bench(Device gpu, const Sizes& s, DType dtype) {
  Arena arena(gpu);
  Tensors x;
  const Shape keys{s.batch, s.length, s.heads, s.d}, values{s.batch, s.length, s.heads, s.values};
  for (const Shape& shape : {keys, keys, values}) {
    x.push_back(random_values(arena, shape, dtype, x.size()));
    x.back().set_differentiable(true);
  }
  const double tokens = static_cast<double>(s.batch * s.heads * s.length),
               pairs = tokens * static_cast<double>(std::min(s.length, s.segment) + 1) / 2;
  const double d = static_cast<double>(s.d), width = static_cast<double>(s.values);
  const double state = s.length > s.segment ? 2 * tokens * static_cast<double>(taylor_features(s.d) * (s.values + 1)) : 0;  // a product
  const double bytes = static_cast<double>(2 * x[0].bytes() + 2 * x[2].bytes());
  print_times(std::string("taylor_attention ") + to_string(dtype) + " " + text(s).substr(7),
              time_op(arena, [&](Tape& t) { return taylor_attention(t, x[0], x[1], x[2], {}, s.segment); }),
              {2 * pairs * (d + width) + 2 * state, bytes}, {2 * pairs * (3 * d + 2 * width) + 4 * state, 2.5 * bytes});
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_passes(all);
  add_decoding(all);
  add_prompts(all);
  add_weights(all);
  return all;
}

void bench_all(Device device, const std::string&) {
  for (const Sizes& s : {Sizes{16, 2048, 12, 16, 64},
                         {2, 16384, 12, 16, 64},
                         {1, 102400, 12, 16, 64},
                         {1, 102400, 12, 16, 64, 1024},
                         {1, 102400, 12, 16, 64, 512},
                         {32, 512, 4, 16, 32}})
    bench(device, s, DType::bf16);
  for (const Sizes& s : {Sizes{16, 2048, 12, 16, 64}, {32, 512, 4, 16, 32}}) bench(device, s, DType::f32);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, cases, bench_all); }

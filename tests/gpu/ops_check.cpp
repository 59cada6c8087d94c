// Every basic op on CUDA against the CPU in double. Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include <cmath>

#include "kernels/ops/adamw/adamw.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/embedding/embedding.h"
#include "kernels/ops/gated_linear/gated_linear.h"
#include "kernels/ops/head_projection/head_projection.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/muon/muon.h"
#include "kernels/ops/norm/norm.h"
#include "kernels/ops/position_sums/position_sums.h"
#include "kernels/ops/read_statistics/read_statistics.h"
#include "tests/gpu/op_table.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

void add_linears(std::vector<OpCase>& cases) {
  const auto linear_case = [&](int64_t rows, int64_t in, int64_t out, bool bias) {
    OpCase c{"linear " + std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out) + (bias ? " bias" : ""), {}, {}};
    c.inputs = {activation({rows, in}, 1), parameter({out, in}, 2, 0.1)};
    if (bias) c.inputs.push_back(parameter({out}, 3));
    c.op = [bias](Tape& t, const Tensors& x) { return Tensors{linear(t, x[0], x[1], bias ? x[2] : Tensor())}; };
    cases.push_back(c);
  };
  linear_case(64, 32, 48, false);
  linear_case(37, 17, 29, true);
  linear_case(5, 129, 3, true);
  linear_case(1000, 320, 264, true);
  for (bool bias : {false, true}) {
    OpCase c{bias ? "linear residual bias" : "linear residual", {}, {}};
    c.inputs = {activation({3, 41, 24}, 1), parameter({40, 24}, 2, 0.2), activation({3, 41, 40}, 3)};
    if (bias) c.inputs.push_back(parameter({40}, 4));
    c.op = [bias](Tape& t, const Tensors& x) { return Tensors{linear(t, x[0], x[1], bias ? x[3] : Tensor(), x[2])}; };
    cases.push_back(c);
  }
  // Into the stream it reads, as a block does: the gradient of the residual is added to in place.
  cases.push_back({"linear onto its input", {activation({70, 32}, 1), parameter({32, 32}, 2, 0.2)}, [](Tape& t, const Tensors& x) {
                     return Tensors{linear(t, x[0], x[1], {}, x[0])};
                   }});
  // Large enough to try algorithms.
  cases.push_back({"linear 2048x320x264", {activation({2048, 320}, 1), parameter({264, 320}, 2, 0.1)}, [](Tape& t, const Tensors& x) {
                     return Tensors{linear(t, x[0], x[1])};
                   }});
  cases.push_back(
      {"linears", {activation({2, 19, 24}, 4), parameter({40, 24}, 5, 0.2), parameter({7, 24}, 6, 0.2)}, [](Tape& t, const Tensors& x) {
         return linears(t, x[0], {x[1], x[2]});
       }});
}

void add_elementwise(std::vector<OpCase>& cases) {
  cases.push_back({"add, add", {activation({3, 7, 11}, 1), activation({3, 7, 11}, 2)}, [](Tape& t, const Tensors& x) {
                     return Tensors{add(t, x[0], add(t, x[1], x[0]))};
                   }});
  const std::pair<const char*, Activation> functions[] = {
      {"none", Activation::none}, {"gelu", Activation::gelu},       {"relu", Activation::relu}, {"relu2", Activation::relu2},
      {"silu", Activation::silu}, {"sigmoid", Activation::sigmoid}, {"tanh", Activation::tanh}};
  for (const auto& [name, f] : functions) {
    cases.push_back({std::string("activate ") + name, {activation({5, 77}, 3, 2)}, [f = f](Tape& t, const Tensors& x) {
                       return Tensors{activate(t, x[0], f)};
                     }});
    cases.push_back({std::string("gated ") + name,
                     {activation({9, 133}, 4, 2), activation({9, 133}, 5)},
                     [f = f](Tape& t, const Tensors& x) { return Tensors{gated(t, x[0], x[1], f)}; }});
  }
}

/// Widths where the weights are neighbours in memory (their size is a multiple of 256 bytes) and where they are not.
void add_gated_linears(std::vector<OpCase>& cases) {
  for (auto [rows, in, out] : {std::array<int64_t, 3>{37, 64, 96}, {129, 40, 72}, {11, 7, 13}, {2050, 192, 512}, {300, 384, 200}})
    for (Activation f : {Activation::gelu, Activation::silu})
      cases.push_back({"gated_linear " + std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out),
                       {activation({rows, in}, 1), parameter({out, in}, 2, 0.2), parameter({out, in}, 3, 0.2)},
                       [f](Tape& t, const Tensors& x) { return Tensors{gated_linear(t, x[0], x[1], x[2], f)}; }});
}

void add_head_projections(std::vector<OpCase>& cases) {
  const auto projection_case = [&](int64_t batch, int64_t length, int64_t heads, int64_t d, QkNorm norm, double base, int64_t in = 40) {
    const int64_t width = heads * d;
    OpCase c{"project_heads " + std::to_string(heads) + "x" + std::to_string(d), {}, {}};
    c.name += norm == QkNorm::none ? "" : norm == QkNorm::l2 ? " l2" : " rms";
    c.inputs = {activation({batch, length, in}, 1), parameter({width, in}, 2, 0.3), parameter({width, in}, 3, 0.3),
                parameter({width, in}, 4, 0.3)};
    if (norm == QkNorm::rms) c.inputs.push_back(parameter({d}, 5)), c.inputs.push_back(parameter({d}, 6));
    c.op = [=](Tape& t, const Tensors& x) {
      HeadProjection p{x[1], x[2], x[3], {}, {}, heads, {}};
      if (norm == QkNorm::rms) p.query_norm_weight = x[4], p.key_norm_weight = x[5];
      p.options.norm = norm;
      p.options.rotary_base = base;
      const ProjectedHeads y = project_heads(t, x[0], p);
      return Tensors{y.q, y.k, y.v};
    };
    cases.push_back(c);
  };
  for (QkNorm norm : {QkNorm::none, QkNorm::l2, QkNorm::rms})
    for (auto [heads, d] : {std::array<int64_t, 2>{3, 64}, {4, 64}, {5, 16}, {17, 32}, {2, 128}, {2, 24}})
      projection_case(3, 37, heads, d, norm, 1e4);
  projection_case(200, 9, 3, 64, QkNorm::none, 1e4);
  projection_case(2, 3, 3, 64, QkNorm::rms, 0);
  projection_case(1, 300, 4, 64, QkNorm::rms, 1e4, 384);
  projection_case(2, 150, 6, 64, QkNorm::l2, 1e4, 328);
  projection_case(40, 9, 3, 128, QkNorm::rms, 1e4, 384);
}

/// Projection and attention at once, where backward has a form of its own (heads of 16, 32, 64, long enough) and where it has not.
void add_attended_heads(std::vector<OpCase>& cases) {
  for (auto [batch, length, heads, d, in, window] : {std::array<int64_t, 6>{2, 300, 3, 64, 40, 0},
                                                     {1, 200, 5, 32, 72, 0},
                                                     {3, 129, 4, 16, 64, 0},
                                                     {1, 400, 2, 64, 384, 70},
                                                     {2, 60, 2, 64, 40, 0},
                                                     {1, 140, 2, 24, 40, 0}}) {
    const int64_t width = heads * d;
    const double deviation = 1 / std::sqrt(static_cast<double>(in));  // scores about 1: large ones magnify what rounding leaves in q and k
    cases.push_back({"attend_heads " + std::to_string(length) + "x" + std::to_string(heads) + "x" + std::to_string(d),
                     {activation({batch, length, in}, 1), parameter({width, in}, 2, deviation), parameter({width, in}, 3, deviation),
                      parameter({width, in}, 4, deviation)},
                     [heads = heads, d = d, window = window](Tape& t, const Tensors& x) {
                       HeadProjection p{x[1], x[2], x[3], {}, {}, heads, {}};
                       p.options.rotary_base = 1e4;
                       return Tensors{attend_heads(t, x[0], p, {1 / std::sqrt(static_cast<double>(d)), window, false}).attention.o};
                     }});
  }
}

void add_norms(std::vector<OpCase>& cases) {
  for (int64_t width : {7, 64, 200, 320, 768, 1030, 4096}) {
    const int64_t rows = width > 1000 ? 33 : 301;
    cases.push_back({"rms_norm " + std::to_string(width),
                     {activation({rows, width}, 1), parameter({width}, 2)},
                     [](Tape& t, const Tensors& x) { return Tensors{rms_norm(t, x[0], x[1], 1e-6)}; }});
    cases.push_back({"layer_norm " + std::to_string(width),
                     {activation({rows, width}, 3), parameter({width}, 4), parameter({width}, 5)},
                     [](Tape& t, const Tensors& x) { return Tensors{layer_norm(t, x[0], x[1], x[2], 1e-5)}; }});
  }
}

void add_embeddings(std::vector<OpCase>& cases) {
  for (auto [vocabulary, width, batch, length] :
       {std::array<int64_t, 4>{11, 5, 3, 17}, {300, 72, 4, 129}, {5000, 33, 2, 40}, {64, 48, 4, 513}, {9, 520, 3, 50}}) {
    cases.push_back({"embedding " + std::to_string(vocabulary) + "x" + std::to_string(width),
                     {parameter({vocabulary, width}, 1), integers({batch, length}, 2, static_cast<uint64_t>(vocabulary))},
                     [](Tape& t, const Tensors& x) { return Tensors{embedding(t, x[0], x[1])}; }});
  }
  cases.push_back({"add_positions", {activation({3, 13, 10}, 3), parameter({20, 10}, 4)}, [](Tape& t, const Tensors& x) {
                     return Tensors{add_positions(t, x[0], x[1])};
                   }});
}

/// Halves: tens of products of two of them are summed without rounding in every type, so equal logits are equal everywhere.
Input in_halves(Input x) {
  for (double& v : x.values) v = std::round(v) / 2;
  return x;
}

/// Targets, of which every third, from the first on, is −1: it counts for nothing.
Input some_without(Input targets) {
  for (size_t i = 0; i < targets.values.size(); i += 3) targets.values[i] = -1;
  return targets;
}

/// A target in one row of `every`, the first of them; 0: in none.
Input one_of(Input targets, int64_t every) {
  for (size_t i = 0; i < targets.values.size(); ++i)
    if (every == 0 || i % static_cast<size_t>(every) != 0) targets.values[i] = -1;
  return targets;
}

void add_cross_entropies(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, std::vector<Input> inputs, double penalty, int64_t most_targets = 0) {
    cases.push_back({"linear_cross_entropy " + std::to_string(inputs[0].shape[0]) + "x" + std::to_string(inputs[1].shape[0]) + name,
                     std::move(inputs), [penalty, most_targets](Tape& t, const Tensors& x) {
                       const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], {penalty, most_targets});
                       return Tensors{loss.mean, loss.tokens};
                     }});
  };
  for (auto [rows, vocabulary, width] : {std::array<int64_t, 3>{13, 11, 8},
                                         {150, 517, 33},
                                         {700, 4096, 64},
                                         {64, 20000, 40},
                                         {600, 9000, 16},
                                         {33, 512, 24},
                                         {33, 256, 24},
                                         {17, 1024, 8},
                                         {9, 8192, 8},
                                         {7, 40000, 8}}) {
    const Input hidden = activation({rows, width}, 1), targets = integers({rows}, 3, static_cast<uint64_t>(vocabulary));
    const Input small = parameter({vocabulary, width}, 2, 0.3), halves = in_halves(parameter({vocabulary, width}, 2));
    add("", {hidden, small, targets}, 0);
    add(" penalized", {in_halves(hidden), halves, targets}, 0.5);
    add(" masked", {hidden, small, some_without(targets)}, 0);
    add(" masked penalized", {in_halves(hidden), halves, some_without(targets)}, 0.5);
    for (const int64_t every : {3, 8}) {
      const Input few = one_of(targets, every);
      const int64_t count = (rows + every - 1) / every;
      const std::string name = " targets at one of " + std::to_string(every);
      add(name, {hidden, small, few}, 0, count);
      add(name + ", more room", {hidden, small, few}, 0, std::min(rows - 1, count + 5));
      add(name + ", penalized", {in_halves(hidden), halves, few}, 0.5, count);
    }
    add(" no target", {hidden, small, one_of(targets, 0)}, 0, (rows + 7) / 8);
  }
  // More blocks of logits than one, and more rows than a block lists.
  const Input hidden = activation({30000, 16}, 1), small = parameter({40000, 16}, 2, 0.3), targets = integers({30000}, 3, 40000);
  add(" targets at one of 3", {hidden, small, one_of(targets, 3)}, 0, 10000);
  add(" targets at one of 8, more room", {hidden, small, one_of(targets, 8)}, 0, 9000);
}

void add_position_sums(std::vector<OpCase>& cases) {
  for (const auto [sequences, length] : {std::array<int64_t, 2>{1, 1}, {13, 300}, {40, 129}})
    cases.push_back({"add_position_sums " + std::to_string(sequences) + "x" + std::to_string(length),
                     {parameter({sequences, length}, 1)},
                     [length = length](Tape& t, const Tensors& x) {
                       const Tensor sums = t.zeros({length}, DType::f64);
                       saccade::add_position_sums(t, x[0], sums);
                       return Tensors{sums};
                     }});
}

void add_read_statistics(std::vector<OpCase>& cases) {
  for (const auto [heads, length] : {std::array<int64_t, 2>{1, 1}, {3, 2}, {5, 33}, {140, 64}, {2, 513}}) {
    const std::string size = " " + std::to_string(heads) + "x" + std::to_string(length);
    const Input weights = parameter({heads, length, length}, 1);
    cases.push_back({"read_sums" + size, {weights}, [](Tape& t, const Tensors& x) { return Tensors{read_sums(t, x[0], 16)}; }});
    cases.push_back({"query_reads" + size, {weights}, [](Tape& t, const Tensors& x) { return Tensors{query_reads(t, x[0], 16)}; }});
  }
}

/// Three steps of AdamW over slots of ragged sizes; norms and values against the CPU in double.
bool check_adamw(Device gpu) {
  const AdamW options;
  const auto train = [&](Device device, DType dtype) {
    Arena arena(device);
    Tape tape(arena, false);
    std::vector<AdamWSlot> slots;
    const Shape shapes[] = {{3}, {130, 70}, {2049}, {1, 1}};
    for (const Shape& shape : shapes) {
      AdamWSlot slot{arena.allocate(shape, dtype),
                     arena.allocate(shape, dtype),
                     arena.allocate(shape, dtype),
                     arena.allocate(shape, dtype),
                     shape.rank() == 2,
                     {}};
      from_doubles(slot.value, activation(shape, 1).values);
      for (const Tensor& zero : {slot.first_moment, slot.second_moment})
        from_doubles(zero, std::vector<double>(static_cast<size_t>(shape.size())));
      if (shape.rank() == 2 && device.is_cuda()) slot.compute_copy = arena.allocate(shape, DType::bf16);
      slots.push_back(slot);
    }
    const Tensor norm = arena.allocate({1}, DType::f64), rates = arena.allocate({3}, DType::f64);
    std::vector<double> result;
    for (int step = 1; step <= 4; ++step) {
      for (size_t i = 0; i < slots.size(); ++i) {
        std::vector<double> g = activation(slots[i].value.shape(), static_cast<uint64_t>(step * 10) + i, step == 1 ? 3 : 0.001).values;
        for (double& v : g) v = static_cast<double>(static_cast<float>(v));
        if (step == 3 && i == 1) g[5] = NAN;  // this step must leave everything as it is
        from_doubles(slots[i].grad, g);
      }
      gradient_norm(tape, slots, norm);
      if (step != 3) result.push_back(to_doubles(norm)[0]);
      const auto r = adamw_rates(options, 1e-2, step);
      copy_from_host(rates, r.data());
      adamw_step(tape, slots, options, rates, 1.0, norm);
    }
    for (const AdamWSlot& slot : slots) {
      for (const Tensor& x : {slot.value, slot.first_moment, slot.second_moment})
        for (double v : to_doubles(x)) result.push_back(v);
      if (slot.compute_copy) {
        const std::vector<double> copy = to_doubles(slot.compute_copy), value = to_doubles(slot.value);
        for (size_t i = 0; i < copy.size(); ++i)
          if (copy[i] != to_bf16_and_back(value[i])) result[0] = NAN;
      }
    }
    return result;
  };
  const std::vector<double> truth = train(Device::cpu(), DType::f64), once = train(gpu, DType::f32), again = train(gpu, DType::f32);
  const double d = difference(once, truth);
  const bool same = std::memcmp(once.data(), again.data(), once.size() * sizeof(double)) == 0;
  std::printf("%-34s f32       %9.2g            %s\n", "gradient_norm, adamw_step", d, d <= 2e-5 && same ? "ok" : "FAILED");
  return d <= 2e-5 && same;
}

/// Four steps of Muon over wide, tall and equal matrices, the third of which must change nothing; against the CPU in double, which does not
/// round to bf16 between products.
bool check_muon(Device gpu) {
  const auto train = [&](Device device, DType dtype) {
    Arena arena(device);
    Tape tape(arena, false);
    std::vector<MuonSlot> slots;
    for (const Shape& shape : {Shape{128, 70}, Shape{70, 128}, Shape{128, 70}, Shape{33, 5}, Shape{256, 256}}) {
      MuonSlot slot{arena.allocate(shape, dtype), arena.allocate(shape, dtype), arena.allocate(shape, dtype)};
      from_doubles(slot.value, activation(shape, slots.size()).values);
      from_doubles(slot.momentum, std::vector<double>(static_cast<size_t>(shape.size())));
      if (device.is_cuda()) slot.compute_copy = arena.allocate(shape, DType::bf16);
      slot.rate = slots.size() == 1 ? 0.5 : 1;
      slots.push_back(slot);
    }
    const Tensor norm = arena.allocate({1}, DType::f64), rate = arena.allocate({1}, DType::f64);
    std::vector<double> result;
    for (int step = 1; step <= 4; ++step) {
      for (size_t i = 0; i < slots.size(); ++i) {
        std::vector<double> g = activation(slots[i].value.shape(), static_cast<uint64_t>(step * 10) + i).values;
        for (double& v : g) v = static_cast<double>(static_cast<float>(v));
        from_doubles(slots[i].grad, g);
      }
      const double norm_now = step == 3 ? NAN : 2.0, learning_rate = 0.1;
      copy_from_host(norm, &norm_now);
      copy_from_host(rate, &learning_rate);
      muon_step(tape, slots, {}, rate, 1.0, norm);
    }
    for (const MuonSlot& slot : slots) {
      const std::vector<double> value = to_doubles(slot.value);
      for (const Tensor& x : {slot.value, slot.momentum})
        for (double v : to_doubles(x)) result.push_back(v);
      if (!slot.compute_copy) continue;
      const std::vector<double> copy = to_doubles(slot.compute_copy);
      for (size_t i = 0; i < copy.size(); ++i)
        if (copy[i] != to_bf16_and_back(value[i])) result[0] = NAN;
    }
    return result;
  };
  const std::vector<double> truth = train(Device::cpu(), DType::f64), once = train(gpu, DType::f32), again = train(gpu, DType::f32);
  const double d = difference(once, truth);
  const bool same = std::memcmp(once.data(), again.data(), once.size() * sizeof(double)) == 0;
  std::printf("%-34s f32       %9.2g            %s\n", "muon_step", d, d <= 1e-2 && same ? "ok" : "FAILED");
  return d <= 1e-2 && same;
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_linears(all);
  add_elementwise(all);
  add_gated_linears(all);
  add_head_projections(all);
  add_attended_heads(all);
  add_norms(all);
  add_embeddings(all);
  for (OpCase& c : all) c.unrecorded = true;
  add_cross_entropies(all);
  add_position_sums(all);
  add_read_statistics(all);
  return all;
}

/// Where there is room for fewer targets than there are, those behind and the mean are no numbers, and those before are right.
bool check_too_many_targets(Device gpu) {
  Arena arena(gpu);
  Tape tape(arena, false);
  const Tensor hidden = arena.allocate({3000, 16}, DType::f32), weight = arena.allocate({64, 16}, DType::f32),
               targets = arena.allocate({3000}, DType::i32);
  from_doubles(hidden, activation({3000, 16}, 1).values);
  from_doubles(weight, activation({64, 16}, 2).values);
  from_doubles(targets, some_without(integers({3000}, 3, 64)).values);
  const Tensor places_of_some = arena.allocate({3000}, DType::i32), places_of_all = arena.allocate({3000}, DType::i32);
  const CrossEntropy some = linear_cross_entropy(tape, hidden, weight, targets, {.most_targets = 1500, .largest = places_of_some}),
                     all = linear_cross_entropy(tape, hidden, weight, targets, {.largest = places_of_all});
  const std::vector<double> found = to_doubles(some.tokens), expected = to_doubles(all.tokens);
  bool ok = std::isnan(to_doubles(some.mean)[0]);
  const std::vector<double> places = to_doubles(places_of_some), all_places = to_doubles(places_of_all);
  for (size_t n = 0, place = 0; n < found.size(); ++n)
    if (n % 3 == 0)
      ok = ok && found[n] == 0 && places[n] == -1;
    else if (place++ < 1500)
      ok = ok && std::abs(found[n] - expected[n]) < 1e-4 && places[n] == all_places[n];
    else
      ok = ok && std::isnan(found[n]) && places[n] == -1;
  std::printf("more targets than there is room for: %s\n", ok ? "ok" : "FAILED");
  return ok;
}

struct LargestCase {
  int64_t rows, vocabulary;
  bool listed;
  double penalty;
  bool with_nan;
};

/// Hidden states and weights in halves, every row of weights twice, and targets in two rows of three, or listed in one. With NaN: in one
/// column of the logits, and in all of some rows.
std::vector<Input> largest_inputs(const LargestCase& c) {
  constexpr int64_t kWidth = 16;
  Input hidden = in_halves(activation({c.rows, kWidth}, 1)), weight = in_halves(parameter({c.vocabulary, kWidth}, 2));
  std::copy_n(weight.values.begin(), c.vocabulary / 2 * kWidth, weight.values.begin() + c.vocabulary / 2 * kWidth);
  if (c.with_nan) weight.values[3] = hidden.values[kWidth + 5] = hidden.values[3 * kWidth] = NAN;
  const Input targets = integers({c.rows}, 3, static_cast<uint64_t>(c.vocabulary));
  return {hidden, weight, c.listed ? one_of(targets, 3) : some_without(targets)};
}

/// What is wrong with the places of the largest logits, or nothing. The places are those of the CPU in double, recorded or not; everything
/// else has the same bytes as where they are not asked for.
std::string compare_largest(const LargestCase& c, DType dtype, Device gpu) {
  const auto asking = [&](bool wanted) {
    return OpCase{"", largest_inputs(c), [c, wanted](Tape& t, const Tensors& x) {
                    CrossEntropyOptions options{c.penalty, c.listed ? (c.rows + 2) / 3 + 4 : 0};
                    if (wanted) options.largest = t.empty({c.rows}, DType::i32);
                    const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], options);
                    return wanted ? Tensors{loss.mean, loss.tokens, options.largest} : Tensors{loss.mean, loss.tokens};
                  }};
  };
  const OpCase wanted = asking(true), plain = asking(false);
  OpValues once = run_case(wanted, gpu, dtype, false), alone = run_case(wanted, gpu, dtype, false, false);
  if (!compares()) return "";
  const OpValues truth = run_case(wanted, Device::cpu(), DType::f64, false), again = run_case(wanted, gpu, dtype, false),
                 without = run_case(plain, gpu, dtype, false), without_alone = run_case(plain, gpu, dtype, false, false),
                 plan = run_case(wanted, Device::plan(Engine::cuda), dtype, false);
  const auto same = [](const OpValues& a, const OpValues& b) {
    for (size_t i = 0; i < a.values.size(); ++i)
      if (std::memcmp(a.values[i].data(), b.values[i].data(), a.values[i].size() * sizeof(double)) != 0) return false;
    return a.values.size() == b.values.size();
  };
  std::string problem;
  if (once.values[2] != truth.values[2]) problem += " places are not the CPU's";
  if (alone.values[2] != truth.values[2]) problem += " places are not the CPU's where nothing is recorded";
  if (!same(once, again)) problem += " two runs differ";
  if (plan.peak != once.peak) problem += " plan peaks at " + std::to_string(plan.peak) + ", the run at " + std::to_string(once.peak);
  once.values.erase(once.values.begin() + 2), alone.values.erase(alone.values.begin() + 2);
  if (!same(once, without)) problem += " asking changes losses or gradients";
  if (!same(alone, without_alone)) problem += " asking changes losses where nothing is recorded";
  return problem;
}

/// Short and long rows for every kernel (17 and 50 257 are no multiples of a vector, 32 000 goes to Hopper's own), more blocks of logits
/// than one, and more rows than a GPU has multiprocessors several times over.
bool check_largest_logits(Device gpu) {
  int failed = 0, count = 0;
  for (const auto [rows, vocabulary] : {std::array<int64_t, 2>{600, 17},
                                        {600, 256},
                                        {600, 1024},
                                        {600, 2048},
                                        {600, 8192},
                                        {600, 32000},
                                        {600, 40000},
                                        {600, 50257},
                                        {7000, 40000}}) {
    if (!in_shard(static_cast<size_t>(vocabulary)) || (short_cases() && rows > 600)) continue;
    for (const bool listed : {false, true})
      for (const bool with_nan : {false, true})
        for (const double penalty : {0.0, 0.5})
          for (const DType dtype : {DType::f32, DType::bf16}) {
            if (short_cases() && (with_nan || (penalty > 0) != listed)) continue;
            Arena::set_poison(true);
            const std::string problem = compare_largest({rows, vocabulary, listed, penalty, with_nan}, dtype, gpu);
            Arena::set_poison(false);
            ++count, failed += problem.empty() ? 0 : 1;
            if (!problem.empty() || std::getenv("SACCADE_TEST_VERBOSE"))
              std::printf("largest logits %lldx%lld%s%s%s %s: %s%s\n", static_cast<long long>(rows), static_cast<long long>(vocabulary),
                          listed ? " listed" : "", with_nan ? " with NaN" : "", penalty > 0 ? " penalized" : "", to_string(dtype),
                          problem.empty() ? " ok" : " FAILED:", problem.c_str());
          }
  }
  std::printf("largest logits: %d of %d rows failed\n", failed, count);
  return failed == 0;
}

}  // namespace

int main(int argc, char** argv) {
  return check_main(argc, argv, cases, {}, [](Device device) {
    const bool adamw = check_adamw(device), muon = check_muon(device), room = check_too_many_targets(device),
               largest = check_largest_logits(device);
    return adamw && muon && room && largest ? 0 : 1;
  });
}

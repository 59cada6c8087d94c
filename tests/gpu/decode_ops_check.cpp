// The ops of decoding on CUDA against the CPU in double. Exit code 1 when a case fails, 77 without a GPU. `decode_ops_check cache`, `long`,
// `heads` and `rows` do a part.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/engine/random.h"
#include "kernels/engine/tape.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/gated_linear/gated_linear.h"
#include "kernels/ops/head_projection/next_heads.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/first_gpu.h"
#include "tests/gpu/shard.h"

using namespace saccade;

namespace {

/// Cached queries, keys and values of one case: on the GPU, and the same rounded values on the CPU in double.
struct Inputs {
  int64_t batch, n, capacity, heads, width, first;

  struct Side {
    Arena arena;
    Tape tape;
    Tensor q, k, v, position;
    explicit Side(Device device) : arena(device), tape(arena, false) {}
    TokenPosition at(int64_t place) const { return {place, position}; }
  };
  Side gpu{Device::cuda(0)}, cpu{Device::cpu()};

  Inputs(const Shape& cache, int64_t new_tokens, int64_t first_new, DType dtype)
      : batch(cache[0]), n(new_tokens), capacity(cache[1]), heads(cache[2]), width(cache[3]), first(first_new) {
    put(gpu.q, cpu.q, {batch, n, heads, width}, dtype, 1);
    put(gpu.k, cpu.k, cache, dtype, 2);
    put(gpu.v, cpu.v, cache, dtype, 3);
    gpu.position = gpu.arena.allocate({1}, DType::i32);
    from_doubles(gpu.position, {static_cast<double>(first)});
  }
  void put(Tensor& on_gpu, Tensor& on_cpu, const Shape& shape, DType dtype, uint64_t seed) {
    on_gpu = gpu.arena.allocate(shape, dtype);
    const Random random(seed, "decode");
    std::vector<double> values;
    for (int64_t i = 0; i < shape.size(); ++i) values.push_back(random.normal(static_cast<uint64_t>(i)));
    from_doubles(on_gpu, values);
    on_cpu = cpu.arena.allocate(shape, DType::f64);
    from_doubles(on_cpu, to_doubles(on_gpu));
  }
};

/// Rows of o whose query selected the same on both sides must agree; others must be few.
void compare(const std::string& name, DType dtype, const Inputs& in, const Tensor& o, const Tensor& expected, const Tensor& selected,
             const Tensor& expected_selected) {
  const std::vector<double> got = to_doubles(o), want = to_doubles(expected);
  std::vector<bool> same(static_cast<size_t>(in.batch * in.heads * in.n), true);
  int64_t flips = 0;
  if (selected) {
    const std::vector<double> a = to_doubles(selected), b = to_doubles(expected_selected);
    const size_t places = a.size() / same.size();
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i] && same[i / places]) same[i / places] = false, ++flips;
  }
  double off = 0;
  for (int64_t b = 0; b < in.batch; ++b)
    for (int64_t r = 0; r < in.n; ++r)
      for (int64_t h = 0; h < in.heads; ++h)
        if (same[static_cast<size_t>((b * in.heads + h) * in.n + r)])
          for (int64_t i = 0; i < in.width; ++i) {
            const auto at = static_cast<size_t>(((b * in.n + r) * in.heads + h) * in.width + i);
            const double d = std::abs(got[at] - want[at]);
            off = std::isfinite(d) ? std::max(off, d) : INFINITY;
          }
  off /= test::largest(want);
  char what[160];
  std::snprintf(what, sizeof what, "off by %.2g, %lld of %zu queries select otherwise", off, static_cast<long long>(flips), same.size());
  test::report(name, off <= (dtype == DType::bf16 ? 1e-2 : 2e-5) && flips * 50 <= static_cast<int64_t>(same.size()), what);
}

std::string title(const char* op, DType dtype, const Inputs& in, const std::string& more) {
  return std::string(op) + " " + to_string(dtype) + " d " + std::to_string(in.width) + " at " + std::to_string(in.first) + " n " +
         std::to_string(in.n) + more;
}

void check_ops() {
  size_t place = 0;
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t width : {16, 25, 32, 64, 80, 128, 256}) {
      if (!test::in_shard(place++)) continue;
      for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {63, 1}, {700, 11}, {1700, 1}}) {
        for (const ScoreOptions& score :
             {ScoreOptions{0.3, 0, false}, ScoreOptions{0.3, 0, true}, ScoreOptions{0.3, 0, true, true}, ScoreOptions{0.3, 300, false}}) {
          Inputs in({2, 1800, 3, width}, n, first, dtype);
          const std::string more = (score.released_alibi ? " released alibi"
                                    : score.alibi        ? " alibi"
                                                         : "") +
                                   std::string(score.window ? " window" : "");
          const Tensor o = cached_attention(in.gpu.tape, in.gpu.q, in.gpu.k, in.gpu.v, score, in.gpu.at(first));
          compare(title("attention", dtype, in, more), dtype, in, o,
                  cached_attention(in.cpu.tape, in.cpu.q, in.cpu.k, in.cpu.v, score, {first}), {}, {});
          const CachedElement e = cached_top1_element(in.gpu.tape, in.gpu.q, in.gpu.k, in.gpu.v, score, in.gpu.at(first));
          const CachedElement f = cached_top1_element(in.cpu.tape, in.cpu.q, in.cpu.k, in.cpu.v, score, {first});
          compare(title("element", dtype, in, more), dtype, in, e.o, f.o, e.selected, f.selected);
        }
        if (width != 25 && width != 64) continue;
        for (ChunkSelection selection :
             {ChunkSelection::exact, ChunkSelection::approx, ChunkSelection::oracle_recent, ChunkSelection::random})
          for (const auto& [chunk, top_k, share] : std::vector<std::tuple<int64_t, int64_t, bool>>{
                   {128, 1, false}, {16, 4, true}, {1, 2, false}, {200, 3, false}, {4000, 1, false}}) {
            Inputs in({2, 1800, 3, width}, n, first, dtype);
            const ChunkOptions options{chunk, top_k, share, selection, 5};
            const ScoreOptions score{0.3, 0, selection == ChunkSelection::exact || selection == ChunkSelection::approx};
            const auto run = [&](Inputs::Side& side, const TokenPosition& start, const TokenPosition& position) {
              Tensor means;
              if (keeps_mean_keys(options)) {
                means = side.arena.allocate({2, 1800 / options.chunk, 3, in.width}, side.k.dtype());
                if (in.first > 0) extend_mean_keys(side.tape, side.k, means, options, start, in.first);
                extend_mean_keys(side.tape, side.k, means, options, position, in.n);
                if (side.arena.device().is_cpu() && dtype == DType::bf16) {  // rounded as there
                  Arena rounding(Device::cuda(0));
                  const Tensor rounded = rounding.allocate(means.shape(), dtype);
                  from_doubles(rounded, to_doubles(means));
                  from_doubles(means, to_doubles(rounded));
                }
              }
              return cached_top1_chunk(side.tape, side.q, side.k, side.v, means, score, options, position);
            };
            const CachedChunk o = run(in.gpu, {0}, in.gpu.at(first)), expected = run(in.cpu, {0}, {first});
            compare(title("chunk", dtype, in,
                          " selection " + std::to_string(static_cast<int>(selection)) + " chunk " + std::to_string(chunk) + " top " +
                              std::to_string(top_k)),
                    dtype, in, o.o, expected.o, o.selected, expected.selected);
          }
      }
    }
}

/// More blocks of keys than a warp merges at once, in sequences of their own lengths.
void check_long_attention() {
  for (DType dtype : {DType::f32, DType::bf16})
    for (const auto& [width, window] : std::vector<std::pair<int64_t, int64_t>>{{64, 0}, {128, 17000}, {25, 0}}) {
      static size_t place = 0;
      if (!test::in_shard(place++)) continue;
      const std::vector<int64_t> firsts{18'000, 511, 512, 0};
      Inputs in({4, 18'010, 2, width}, 1, firsts[0], dtype);
      Tensor positions[2];
      for (Inputs::Side* side : {&in.gpu, &in.cpu}) {
        Tensor& at = positions[side == &in.cpu];
        at = side->arena.allocate({4}, DType::i32);
        from_doubles(at, {firsts.begin(), firsts.end()});
      }
      const ScoreOptions score{0.3, window, false};
      for (int again = 0; again < 2; ++again) {  // counters are as they were
        const Tensor o = cached_attention(in.gpu.tape, in.gpu.q, in.gpu.k, in.gpu.v, score, {firsts[0], positions[0]});
        compare(title("long attention", dtype, in, window > 0 ? " window" : ""), dtype, in, o,
                cached_attention(in.cpu.tape, in.cpu.q, in.cpu.k, in.cpu.v, score, {firsts[0], positions[1]}), {}, {});
      }
    }
}

/// Query, and what is in the caches afterwards, rows of other tokens included.
void check_next_heads(int64_t batch, int64_t in, bool input_norm) {
  struct Size {
    int64_t heads, width;
  };
  for (DType dtype : {DType::f32, DType::bf16})
    for (const Size& size : {Size{12, 64}, Size{3, 16}, Size{40, 32}, Size{2, 128}, Size{5, 256}, Size{2, 24}}) {
      if (input_norm && size.width != 64 && size.width != 128 && size.width != 24) continue;
      for (const QkNorm norm : {QkNorm::none, QkNorm::l2, QkNorm::rms})
        for (const double base : {0.0, 10'000.0}) {
          static size_t place = 0;
          if (!test::in_shard(place++)) continue;
          const int64_t heads = size.heads, width = size.width;
          constexpr int64_t kCapacity = 210;
          std::vector<double> firsts{kCapacity - 1, 0, 3, 200, 17};
          for (int64_t b = 5; b < batch; ++b) firsts.push_back(static_cast<double>(b * 37 % kCapacity));
          firsts.resize(static_cast<size_t>(batch));
          Arena arenas[2] = {Arena(Device::cuda(0)), Arena(Device::cpu())};
          std::vector<std::vector<double>> results[2];
          std::vector<std::vector<double>> rounded;  // what the GPU holds
          for (int side = 0; side < 2; ++side) {
            Arena& arena = arenas[side];
            Tape tape(arena, false);
            const DType type = side == 0 ? dtype : DType::f64;
            size_t next = 0;
            const auto random = [&](const Shape& shape, DType as) {
              const Tensor x = arena.allocate(shape, as);
              if (side == 0) {
                const Random numbers(next, "next heads");
                std::vector<double> values;
                for (int64_t i = 0; i < shape.size(); ++i) values.push_back(0.3 * numbers.normal(static_cast<uint64_t>(i)));
                from_doubles(x, values);
                rounded.push_back(to_doubles(x));
              } else {
                from_doubles(x, rounded[next]);
              }
              ++next;
              return x;
            };
            const DType weights = accumulation_dtype(type);
            const Tensor x = random({batch, 1, in}, type), all = random({3 * heads * width, in}, weights);
            const Shape cache{batch, kCapacity, heads, width};
            const Tensor keys = random(cache, type), values = random(cache, type);
            const auto part = [&](int64_t i) { return all.slice(i * heads * width, (i + 1) * heads * width); };
            HeadProjection p{part(0), part(1), part(2), {}, {}, heads, {}};
            if (norm == QkNorm::rms) p.query_norm_weight = random({width}, weights), p.key_norm_weight = random({width}, weights);
            p.options.norm = norm, p.options.rotary_base = base;
            InputNorm first;
            if (input_norm) first = {random({in}, weights), 0.02};
            const Tensor positions = arena.allocate({batch}, DType::i32);
            from_doubles(positions, firsts);
            p.options.position = {kCapacity - 1, positions};
            if (dtype == DType::bf16 && side == 0) {  // products read a copy, as a model's do
              const Tensor copy = arena.allocate(all.shape(), DType::bf16);
              convert(copy, all);
              int64_t row = 0;
              for (const Tensor& w : {p.query, p.key, p.value}) {
                tape.bind_compute_copy(w, copy.slice(row, row + heads * width));
                row += heads * width;
              }
              rounded[1] = to_doubles(copy);
            }
            const Tensor q = project_next_heads(tape, x, p, keys, values, first);
            for (const Tensor& y : {q, keys, values}) results[side].push_back(to_doubles(y));
          }
          double off = 0;
          for (size_t i = 0; i < 3; ++i) {
            const double most = test::largest(results[1][i]);
            for (size_t j = 0; j < results[1][i].size(); ++j) {
              const double d = std::abs(results[0][i][j] - results[1][i][j]) / most;
              off = std::isfinite(d) ? std::max(off, d) : INFINITY;
            }
          }
          char what[60];
          std::snprintf(what, sizeof what, "off by %.2g", off);
          test::report("next heads " + std::string(to_string(dtype)) + " " + std::to_string(heads) + " of " + std::to_string(width) +
                           " norm " + std::to_string(static_cast<int>(norm)) + (base > 0 ? " rotary" : "") + ", " + std::to_string(batch) +
                           " rows of " + std::to_string(in) + (input_norm ? " normed" : ""),
                       off <= (dtype == DType::bf16 ? 1e-2 : 2e-5), what);
        }
    }
}

void check_next_heads() {
  check_next_heads(5, 48, false);
  check_next_heads(1, 320, true);
  check_next_heads(64, 768, true);
  check_next_heads(65, 72, true);
}

/// An op on a GPU in bf16 and on the CPU in double, from the same numbers; weights are f32 there, and products read a copy.
struct BothSides {
  Arena arenas[2] = {Arena(Device::cuda(0)), Arena(Device::cpu())};
  Tape gpu{arenas[0], false}, cpu{arenas[1], false};
  using Pair = std::array<Tensor, 2>;
  uint64_t next = 0;

  Pair random(const Shape& shape, DType dtype, double deviation) {
    const Pair x{arenas[0].allocate(shape, dtype), arenas[1].allocate(shape, DType::f64)};
    const Random numbers(next++, "few rows");
    std::vector<double> values;
    for (int64_t i = 0; i < shape.size(); ++i) values.push_back(deviation * numbers.normal(static_cast<uint64_t>(i)));
    from_doubles(x[0], values);
    from_doubles(x[1], to_doubles(x[0]));
    return x;
  }
  Pair weight(int64_t out, int64_t in) {
    const Pair w = random({out, in}, DType::f32, 1 / std::sqrt(static_cast<double>(in)));
    const Tensor copy = arenas[0].allocate({out, in}, DType::bf16);
    convert(copy, w[0]);
    from_doubles(w[1], to_doubles(copy));
    gpu.bind_compute_copy(w[0], copy);
    return w;
  }
};

double apart(const std::vector<double>& got, const std::vector<double>& want) {
  double off = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(got[i] - want[i]);
    off = std::isfinite(d) ? std::max(off, d) : INFINITY;
  }
  return off / test::largest(want);
}

/// op(tape, x): the rows of the GPU's result against the CPU's; the same bytes again, and for rows 0 … m / 2 alone where few rows have one
/// path.
template <class Op>
void check_rows(const std::string& name, BothSides& both, int64_t m, int64_t in, bool independent, double limit, Op&& op) {
  const BothSides::Pair x = both.random({m, in}, DType::bf16, 1);
  const std::vector<double> got = to_doubles(op(both.gpu, x[0], 0)), again = to_doubles(op(both.gpu, x[0], 0)),
                            want = to_doubles(op(both.cpu, x[1], 1));
  bool same = got == again;
  if (independent) {
    const std::vector<double> alone = to_doubles(op(both.gpu, x[0].slice(0, m / 2 + 1), 0));
    same = same && std::equal(alone.begin(), alone.end(), got.begin());
  }
  const double off = apart(got, want);
  char what[80];
  std::snprintf(what, sizeof what, "off by %.2g, %s", off, same ? "the same bytes" : "OTHER bytes");
  test::report(name + ", " + std::to_string(m) + " rows", off <= limit && same && test::largest(want) > 0, what);
}

/// Products of few rows, and of more: sizes of the presets, and such as leave parts of tiles empty or take the general path.
void check_few_rows() {
  struct Size {
    int64_t in, out;
  };
  size_t place = 0;
  for (const int64_t m : {1, 15, 33, 64, 65}) {
    for (const Size& size : {Size{768, 768}, Size{768, 2304}, Size{2048, 768}, Size{320, 320}, Size{896, 320}, Size{320, 256},
                             Size{512, 192}, Size{768, 4096}, Size{768, 32000}, Size{200, 72}, Size{8, 8}, Size{72, 1000}, Size{1536, 1536},
                             Size{6144, 512}, Size{6208, 128}, Size{100, 60}, Size{64, 60}})
      for (const bool biased : {false, true})
        for (const bool residual : {false, true}) {
          if (!test::in_shard(place++) || (size.out == 32000 && (biased || residual || m != 64))) continue;
          BothSides both;
          const auto w = both.weight(size.out, size.in);
          const auto b = biased ? both.random({size.out}, DType::f32, 1) : BothSides::Pair{};
          const auto r = residual ? both.random({m, size.out}, DType::bf16, 1) : BothSides::Pair{};
          // The general path rounds bias and residual to bf16 before it adds the product.
          const bool one_path = m <= 64 && size.in % 8 == 0 && size.out % 8 == 0 && size.in <= 6144 && size.out < 32000;
          check_rows("linear " + std::to_string(size.in) + " to " + std::to_string(size.out) + (biased ? " bias" : "") +
                         (residual ? " residual" : ""),
                     both, m, size.in, one_path, biased && !one_path ? 1e-2 : 5e-3, [&](Tape& tape, const Tensor& x, size_t side) {
                       const Tensor rest = residual ? r[side].slice(0, x.dim(0)) : Tensor();
                       return linear(tape, x, w[side], b[side], rest);
                     });
        }
    for (const Size& size : {Size{768, 2048}, Size{320, 896}, Size{192, 512}, Size{200, 72}, Size{6144, 640}, Size{64, 60}})
      for (const Activation f : {Activation::gelu, Activation::silu})
        for (const bool normed : {false, true}) {
          if (!test::in_shard(place++)) continue;
          BothSides both;
          const auto gate = both.weight(size.out, size.in), up = both.weight(size.out, size.in);
          const auto gain = both.random({size.in}, DType::f32, 1);
          check_rows("gated linear " + std::to_string(size.in) + " to " + std::to_string(size.out) +
                         (f == Activation::silu ? " silu" : " gelu") + (normed ? " normed" : ""),
                     both, m, size.in, m <= 64 && size.out % 8 == 0, 1e-2, [&](Tape& tape, const Tensor& x, size_t side) {
                       return gated_linear(tape, x, gate[side], up[side], f, normed ? InputNorm{gain[side], 0.02} : InputNorm{});
                     });
        }
  }
}

}  // namespace

int main(int argc, char** argv) {
  test::first_gpu();
  const std::string what = argc > 1 ? argv[1] : "";
  if (what.empty() || what == "cache") check_ops();
  if (what.empty() || what == "long") check_long_attention();
  if (what.empty() || what == "heads") check_next_heads();
  if (what.empty() || what == "rows") check_few_rows();
  return test::end_of_cases();
}

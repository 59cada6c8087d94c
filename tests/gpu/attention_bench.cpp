#include "tests/gpu/attention_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "kernels/engine/transfer.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/heads/heads.h"
#include "kernels/ops/top1_chunk/top1_chunk.h"
#include "kernels/ops/top1_element/top1_element.h"

using namespace saccade;

namespace {

/// Roughly normal bf16 values.
void randomize(const Tensor& x, uint64_t seed) {
  std::vector<uint16_t> bits(static_cast<size_t>(x.size()));
  uint64_t s = seed * 0x9E3779B97F4A7C15ull + 1;
  for (uint16_t& b : bits) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    const float sum = static_cast<float>((s & 0xffff) + (s >> 16 & 0xffff) + (s >> 32 & 0xffff) + (s >> 48)) / 65536.0f - 2.0f;
    const float value = sum * 1.732f;
    uint32_t word;
    static_assert(sizeof word == sizeof value);
    std::copy_n(reinterpret_cast<const char*>(&value), 4, reinterpret_cast<char*>(&word));
    b = static_cast<uint16_t>(word >> 16);
  }
  copy_from_host(x, bits.data());
}

double median_ms(Tape& tape, int repeats, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<double> times;
  for (int i = 0; i < repeats + 2; ++i) {
    cudaEventRecord(begin, tape.stream());
    work();
    cudaEventRecord(end, tape.stream());
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 2) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

using Op = std::function<Tensor(Tape&, const Tensor&, const Tensor&, const Tensor&)>;

/// Only rows whose name holds this are measured.
std::string wanted_name;

void measure(const char* name, int64_t batch, int64_t length, int64_t heads, int64_t width, double pairs, const Op& op, int wanted = 7) {
  if (std::string(name).find(wanted_name) == std::string::npos) return;
  Arena arena(Device::cuda(0));
  Tape inputs(arena, false);
  const Shape shape{batch, length, heads, width};
  Tensor x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = inputs.empty(shape, DType::bf16);
    randomize(x[i], static_cast<uint64_t>(i + 1));
    x[i].set_differentiable(wanted >> i & 1);
  }
  const int repeats = length > 50000 ? 3 : 9;
  const double forward = median_ms(inputs, repeats, [&] {
    Tape tape(arena, false);
    op(tape, x[0], x[1], x[2]);
  });
  const double both = median_ms(inputs, repeats, [&] {
    Tape tape(arena, true);
    const Tensor y = op(tape, x[0], x[1], x[2]);
    tape.backward({{y, x[3]}});
  });
  const double flops = 4.0 * static_cast<double>(batch * heads * width) * pairs;
  std::printf("%-44s forward %8.3f ms (%4.0f TFLOP/s)  with backward %8.3f ms (%4.0f TFLOP/s)  peak %.1f GiB\n", name, forward,
              flops / forward * 1e-9, both, 3.5 * flops / both * 1e-9, static_cast<double>(arena.peak_extent()) / (1 << 30));
  std::fflush(stdout);
}

}  // namespace

int attention_bench(const std::string& only) {
  wanted_name = only;
  const auto causal = [](double t) { return t * (t + 1) / 2; };
  const Op dense = [](Tape& t, const Tensor& q, const Tensor& k, const Tensor& v) {
    return attention(t, q, k, v, {1 / std::sqrt(static_cast<double>(q.dim(3))), 0, false}).o;
  };
  const auto chunk = [](ChunkSelection selection) -> Op {
    return [=](Tape& t, const Tensor& q, const Tensor& k, const Tensor& v) {
      return top1_chunk(t, q, k, v, {0.125, 0, false}, {128, 1, false, selection, 1}).o;
    };
  };
  measure("attention 32 x 2048 x 12 x 64", 32, 2048, 12, 64, causal(2048), dense);
  measure("attention 1 x 102400 x 12 x 64", 1, 102400, 12, 64, causal(102400), dense);
  measure("  dq only", 32, 2048, 12, 64, causal(2048), dense, 1);
  measure("  dk, dv only", 32, 2048, 12, 64, causal(2048), dense, 6);
  measure("attention 32 x 1024 x 5 x 64", 32, 1024, 5, 64, causal(1024), dense);
  measure("attention 32 x 512 x 6 x 32", 32, 512, 6, 32, causal(512), dense);
  measure("attention 16 x 2048 x 6 x 128", 16, 2048, 6, 128, causal(2048), dense);
  measure("attention window 64, 32 x 2048 x 12 x 64", 32, 2048, 12, 64, 64 * 2048,
          [](Tape& t, const Tensor& q, const Tensor& k, const Tensor& v) {
            return attention(t, q, k, v, {0.125, 64, false}).o;
          });
  measure("top1_element 32 x 2048 x 12 x 64", 32, 2048, 12, 64, causal(2048),
          [](Tape& t, const Tensor& q, const Tensor& k, const Tensor& v) {
            return top1_element(t, q, k, v, {0.125, 0, false}).o;
          });
  measure("top1_chunk exact 102400", 1, 102400, 12, 64, 192.0 * 102400, chunk(ChunkSelection::exact));
  measure("top1_chunk approx 102400", 1, 102400, 12, 64, 192.0 * 102400, chunk(ChunkSelection::approx));
  measure("top1_chunk random 102400", 1, 102400, 12, 64, 192.0 * 102400, chunk(ChunkSelection::random));
  measure("top1_chunk recent 102400 (sorted reads)", 1, 102400, 12, 64, 192.0 * 102400, chunk(ChunkSelection::oracle_recent));
  measure("top1_chunk exact 32 x 2048", 32, 2048, 12, 64, 192.0 * 2048, chunk(ChunkSelection::exact));
  measure("prepare_heads l2 + rotary 32 x 2048 x 12 x 64", 32, 2048, 12, 64, 1, [](Tape& t, const Tensor& q, const Tensor&, const Tensor&) {
    return prepare_heads(t, q, {}, {QkNorm::l2, 10000});
  });
  return 0;
}

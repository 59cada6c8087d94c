// States between the segments of long sequences: what each segment adds to a state of zeros, side by side; then these chained.
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay_sweep.cuh"

namespace saccade::cuda::decay {
namespace {

template <int P, int N>
struct Sizes {
  static constexpr int kWarps = P / 16, kThreads = 32 * kWarps;
  static constexpr uint32_t kKeys = kChunk * N * 2, kStage = kKeys + kChunk * P * 2, kShared = kTileAlignment + 2 * kStage;
};

/// A block owns a segment of a head; states [lines, segments, N, P], kept [lines, segments]. The last one (backward: the first) adds to
/// no other segment.
template <bool kForward, int P, int N>
__global__ void __launch_bounds__(Sizes<P, N>::kThreads) local_kernel(Form<bf16> f, const bf16* d_o, float* states, float* kept) {
  using Size = Sizes<P, N>;
  constexpr int kThreads = Size::kThreads;
  extern __shared__ char shared[];
  __shared__ float write[2][kChunk], last[2];
  const Segment segment(f, static_cast<int>(blockIdx.x));
  ChunkPosition p = segment.place(f);
  const int begin = p.c, steps = segment.chunks(f);
  const uint32_t base = aligned_tiles(shared);
  const auto writers = [&](int step) { return KeyRows<N>{base + static_cast<uint32_t>(step % 2) * Size::kStage}; };
  const auto values = [&](int step) { return SharedRows<P>{writers(step).base + Size::kKeys}; };
  TokenDecay decay;
  const auto load = [&](int step) {
    p.c = kForward ? begin + step : begin + steps - 1 - step;
    p.first = p.c * kChunk, p.size = min(kChunk, f.length - p.first);
    writers(step).template copy<kThreads>((kForward ? f.k : f.q) + f.key_row(p, 0), int64_t{f.groups} * f.keys, p.size, f.keys);
    copy_rows<kChunk, kThreads>(values(step), (kForward ? f.x : d_o) + f.value_row(p, 0), int64_t{f.heads} * P, p.size);
    copy_async_commit();
    if (threadIdx.x < kChunk) decay.load(f, p, static_cast<int>(threadIdx.x));
  };
  const bool adds = segment.index != (kForward ? f.segments - 1 : 0);
  float state[N / 8][4] = {}, through = 0;
  load(0);
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x < kChunk) {
      write[step % 2][threadIdx.x] = kForward ? exp2_approximate(decay.end - decay.running) * decay.step : exp2_approximate(decay.running);
      last[step % 2] = exp2_approximate(decay.end);
      through += decay.end;
    }
    copy_async_wait();
    publish_writes();
    __syncthreads();
    if (step + 1 < steps) load(step + 1);
    if (!adds) continue;
    Values x;
    load_values(x, values(step));
    write_state<P, N>(state, x, write[step % 2], last[step % 2], writers(step));
  }
  if (threadIdx.x == 0) kept[blockIdx.x] = exp2_approximate(through);
  if (adds) for_state<P, N>(state, f.keys, [&](int element, float x) { states[int64_t{blockIdx.x} * f.keys * P + element] = x; });
}

constexpr int kChainThreads = 256;

/// states[s + 1] = kept[s] states[s] + local[s] in order (backward: from the end), in place. A thread owns an element of a line's state.
template <bool kForward>
__global__ void __launch_bounds__(kChainThreads)
    chain_kernel(float* states, const float* kept, const float* given, int segments, int size) {
  constexpr int kAhead = 8;
  const int element = static_cast<int>(blockIdx.x * kChainThreads + threadIdx.x);
  if (element >= size) return;
  states += int64_t{blockIdx.y} * segments * size + element;
  kept += int64_t{blockIdx.y} * segments;
  float carried = given ? given[int64_t{blockIdx.y} * size + element] : 0.0f;
  for (int begin = 0; begin < segments; begin += kAhead) {
    const auto at = [&](int i) { return kForward ? begin + i : segments - 1 - begin - i; };
    float local[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) local[i] = begin + i + 1 < segments ? states[int64_t{at(i)} * size] : 0.0f;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (begin + i >= segments) break;
      states[int64_t{at(i)} * size] = carried;
      carried = fmaf(kept[at(i)], carried, local[i]);
    }
  }
}

template <bool kForward>
void launch(Stream stream, const DecayForm& in, const DecayScratch& scratch, const bf16* d_o, const Tensor& given) {
  const auto lines = static_cast<unsigned>(in.x.dim(0) * in.x.dim(2)), segments = static_cast<unsigned>(in.segments());
  float *states = pointer<float>(scratch.given), *kept = pointer<float>(scratch.kept);
  with_sizes(in, [&](auto p, auto n) {
    using Size = Sizes<p(), n()>;
    const auto kernel = local_kernel<kForward, p(), n()>;
    allow_shared(kernel, Size::kShared);
    kernel<<<lines * segments, Size::kThreads, Size::kShared, stream>>>(Form<bf16>(in), d_o, states, kept);
  });
  check_launch();
  const int64_t size = in.q.dim(3) * in.x.dim(3);
  chain_kernel<kForward><<<dim3(blocks_for(size, kChainThreads), lines), kChainThreads, 0, stream>>>(
      states, kept, pointer_or_null<float>(given), static_cast<int>(segments), static_cast<int>(size));
  check_launch();
}

}  // namespace

void launch_segments(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& given) {
  launch<true>(stream, in, scratch, nullptr, given);
}

void launch_segment_gradients(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& d_o, const Tensor& given) {
  launch<false>(stream, in, scratch, pointer<bf16>(d_o), given);
}

}  // namespace saccade::cuda::decay

#include "kernels/cuda/device/lane_sums.cuh"
#include "kernels/cuda/wkv/wkv_chunk.cuh"

namespace saccade::cuda {
namespace wkv5 {
namespace {

constexpr int kColumns = 2;  ///< of the state in a lane

template <int kPaddedWidth>
struct SweepWidths : Widths<kPaddedWidth, kPaddedWidth == 16 ? 4 : 8> {
  using Base = Widths<kPaddedWidth, kPaddedWidth == 16 ? 4 : 8>;
  static constexpr int kThreads = kPaddedWidth * Base::kLanes / kColumns < 128 ? kPaddedWidth * Base::kLanes / kColumns : 128;
  static constexpr int kBlock = kThreads / Base::kLanes * kColumns;     ///< columns of a block
  static constexpr int kBlocks = kPaddedWidth / kBlock;                 ///< of a head
  static constexpr int kRows = kPaddedWidth > 128 ? kTile / 2 : kTile;  ///< tokens in shared memory at a time
  static constexpr int kTogether = Base::kLanes < 8 ? Base::kLanes : 8;
  static __device__ int column() { return (Base::warp() * Base::kSpan + Base::lane() % Base::kSpan) * kColumns; }
};

template <class W>
struct alignas(16) SweepTile {
  float q[W::kRows][W::kPadded], p[W::kRows][W::kPadded], w[W::kRows][W::kPadded];
  float x[W::kRows][W::kBlock], out[W::kRows][W::kBlock];
  float own[W::kRows];  ///< Σ_i q p bonus
};

template <class W, class T>
__device__ __forceinline__ void load_tile(const Head& head, const Sweep<T>& s, int first_column, int t0, SweepTile<W>& tile) {
  const auto token = [&](int t) { return s.from_right ? head.length - 1 - t0 - t : t0 + t; };
  for (int i = static_cast<int>(threadIdx.x); i < W::kRows * W::kPadded; i += W::kThreads) {
    const int t = i / W::kPadded, c = i % W::kPadded, at = token(t);
    const bool inside = head.holds(at, c);
    tile.q[t][c] = inside ? to_float(s.q[head.at(at, c)]) : 0.0f;
    tile.p[t][c] = inside ? to_float(s.p[head.at(at, c)]) : 0.0f;
    tile.w[t][c] = inside ? decay_of(s.decays.raw(head, at, c)) : 1.0f;
  }
  for (int i = static_cast<int>(threadIdx.x); i < W::kRows * W::kBlock; i += W::kThreads) {
    const int t = i / W::kBlock, c = i % W::kBlock, at = token(t);
    tile.x[t][c] = s.x && head.holds(at, first_column + c) ? to_float(s.x[head.at(at, first_column + c)]) : 0.0f;
  }
}

template <class W>
__device__ __forceinline__ void own_terms(const Head& head, const float* bonus, SweepTile<W>& tile) {
  for (int t = W::warp(); t < W::kRows; t += W::kThreads / 32) {
    float sum = 0;
    for (int c = W::lane(); c < head.width; c += 32) sum += tile.q[t][c] * tile.p[t][c] * bonus[head.parameter(c)];
    sum = warp_sum(sum);
    if (W::lane() == 0) tile.own[t] = sum;
  }
}

template <class W>
__device__ __forceinline__ void advance(SweepTile<W>& tile, float (&state)[W::kEach][kColumns]) {
  const int column = W::column();
#pragma unroll 1
  for (int t0 = 0; t0 < W::kRows; t0 += W::kTogether) {
    float sums[W::kTogether * kColumns] = {};
#pragma unroll
    for (int i = 0; i < W::kTogether; ++i) {
      const int t = t0 + i;
      float q[W::kEach], p[W::kEach], w[W::kEach];
      W::load(tile.q[t], q), W::load(tile.p[t], p), W::load(tile.w[t], w);
      const float2 x = *reinterpret_cast<const float2*>(tile.x[t] + column);
#pragma unroll
      for (int c = 0; c < W::kEach; ++c) {
        sums[i * kColumns] += q[c] * state[c][0], sums[i * kColumns + 1] += q[c] * state[c][1];
        state[c][0] = w[c] * state[c][0] + p[c] * x.x, state[c][1] = w[c] * state[c][1] + p[c] * x.y;
      }
    }
    lane_sums<W::kTogether * kColumns, 16, W::kSpan>(sums);
    constexpr int kKept = W::kTogether * kColumns / W::kLanes > 0 ? W::kTogether * kColumns / W::kLanes : 1;
    constexpr int kSame = kKept * W::kLanes / (W::kTogether * kColumns);
    const int first = W::group() / kSame * kKept;
#pragma unroll
    for (int j = 0; j < kKept; ++j) tile.out[t0 + (first + j) / kColumns][column + (first + j) % kColumns] = sums[j];
  }
}

template <class W, class T>
__device__ __forceinline__ void store_out(const Head& head, const Sweep<T>& s, int first_column, int t0, const SweepTile<W>& tile) {
  for (int i = static_cast<int>(threadIdx.x); i < W::kRows * W::kBlock; i += W::kThreads) {
    const int t = i / W::kBlock, c = i % W::kBlock, at = s.from_right ? head.length - 1 - t0 - t : t0 + t;
    if (head.holds(at, first_column + c)) s.out.put(head.at(at, first_column + c), tile.out[t][c] + tile.own[t] * tile.x[t][c]);
  }
}

template <class T, class W>
__global__ void __launch_bounds__(W::kThreads) sweep_kernel(Head head, Sweep<T> s) {
  __shared__ SweepTile<W> tile;
  const int64_t index = blockIdx.x / W::kBlocks;
  head.sequence = index / head.heads, head.head = index % head.heads;
  const int first_column = static_cast<int>(blockIdx.x % W::kBlocks) * W::kBlock, column = first_column + W::column();
  if (first_column >= head.width && !s.starts) return;  // padding belongs to the starts
  float state[W::kEach][kColumns];
#pragma unroll
  for (int i = 0; i < W::kEach; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const bool inside = s.start && W::element(i) < head.width && column + j < head.width;
      state[i][j] = inside ? s.start[head.state(W::element(i), column + j)] : 0.0f;
    }
  const int64_t tiles = (head.length + kTile - 1) / kTile;
  for (int t0 = 0; t0 < head.length; t0 += W::kRows) {
    __syncthreads();
    load_tile<W>(head, s, first_column, t0, tile);
    if (s.starts && t0 % kTile == 0) {
      float* to = s.starts + (index * tiles + t0 / kTile) * W::kPadded * W::kPadded + column;
#pragma unroll
      for (int i = 0; i < W::kEach; ++i)
        *reinterpret_cast<float2*>(to + W::element(i) * W::kPadded) = make_float2(state[i][0], state[i][1]);
    }
    __syncthreads();
    if (s.out.to) own_terms<W>(head, s.bonus, tile);
    advance<W>(tile, state);
    if (!s.out.to) continue;
    __syncthreads();
    store_out<W>(head, s, first_column, t0, tile);
  }
  if (!s.end.to) return;
#pragma unroll
  for (int i = 0; i < W::kEach; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      if (W::element(i) < head.width && column + j < head.width) s.end.put(head.state(W::element(i), column + j), state[i][j]);
}

constexpr int kQueries = 4;

/// A warp owns kQueries queries of the sequences from that of `head` on: with p = r_t, a_tj = p · k_j, then p ← e^{λ_j} p, from j = t − 1
/// back.
template <class T>
__global__ void __launch_bounds__(128)
    weights_kernel(Head head, const T* r, const T* k, Decays<T> decays, const float* bonus, float* weights) {
  constexpr int kSlots = static_cast<int>(kMaxWkvWidth) / 32;
  head.sequence += blockIdx.y / head.heads, head.head = blockIdx.y % head.heads;
  const int query = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32) * kQueries, lane = static_cast<int>(threadIdx.x) % 32;
  const int end = min(head.length, query + kQueries);
  if (query >= head.length) return;
  float* rows = weights + (int64_t{blockIdx.y} * head.length + query) * head.length;
  float p[kQueries][kSlots] = {};  // zero until a query's own token
  for (int j = end - 1; j >= 0; --j) {
    float dots[kQueries] = {};
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const int c = lane + 32 * i;
      if (c >= head.width) break;
      const float key = to_float(k[head.at(j, c)]), decay = decay_of(decays.raw(head, j, c));
#pragma unroll
      for (int t = 0; t < kQueries; ++t) {
        if (j == query + t) {
          p[t][i] = to_float(r[head.at(j, c)]);
          dots[t] += p[t][i] * bonus[head.parameter(c)] * key;
        } else {
          dots[t] += p[t][i] * key;
          p[t][i] *= decay;
        }
      }
    }
    lane_sums<kQueries, 16, 1>(dots);  // the i-th on the i-th group of lanes
    constexpr int kGroup = 32 / kQueries;
    const int own = lane / kGroup;
    if (lane % kGroup == 0 && query + own < end) rows[int64_t{own} * head.length + j] = dots[0];
  }
  for (int t = 0; query + t < end; ++t)
    for (int j = end + lane; j < head.length; j += 32) rows[int64_t{t} * head.length + j] = 0;
}

}  // namespace

template <class T>
void run_sweep(Stream stream, const cpu::WkvInputs& in, const Sweep<T>& sweep) {
  const Head head{0, 0, in.shape.heads, static_cast<int>(in.shape.length), static_cast<int>(in.shape.width)};
  with_padded(in.shape.width, [&](auto padded) {
    using W = SweepWidths<decltype(padded)::value>;
    sweep_kernel<T, W><<<blocks_for(in.shape.sequences() * W::kBlocks, 1), W::kThreads, 0, stream>>>(head, sweep);
  });
  check_launch();
}
template void run_sweep<float>(Stream, const cpu::WkvInputs&, const Sweep<float>&);
template void run_sweep<bf16>(Stream, const cpu::WkvInputs&, const Sweep<bf16>&);

}  // namespace wkv5

void wkv_forward(Stream stream, const cpu::WkvInputs& in, const Tensor& carried, const Tensor& y, const Tensor& state) {
  if (wkv_in_chunks(in)) {
    const wkv5::StatePass pass{pointer<bf16>(in.r),
                               pointer<bf16>(in.k),
                               pointer<bf16>(in.v),
                               wkv5::decays_of<bf16>(in),
                               pointer<float>(in.bonus),
                               pointer_or_null<float>(in.start),
                               pointer<bf16>(y),
                               nullptr,
                               pointer_or_null<float>(carried),
                               {pointer<float>(state), false},
                               false};
    return wkv5::run_state_pass(stream, in, pass);
  }
  dispatch_cuda(in.r.dtype(), [&](auto zero) {
    using T = decltype(zero);
    wkv5::run_sweep<T>(stream, in,
                       {pointer<T>(in.r),
                        pointer<T>(in.k),
                        pointer<T>(in.v),
                        wkv5::decays_of<T>(in),
                        pointer<float>(in.bonus),
                        pointer_or_null<float>(in.start),
                        {pointer<T>(y), false},
                        {pointer<float>(state), false},
                        nullptr,
                        false});
  });
}

void wkv_weights(Stream stream, const cpu::WkvInputs& in, const Sequences& sequences, const Tensor& weights) {
  const wkv5::Head head{sequences.first, 0, in.shape.heads, static_cast<int>(in.shape.length), static_cast<int>(in.shape.width)};
  const dim3 grid(blocks_for(in.shape.length, 4 * wkv5::kQueries), static_cast<unsigned>(sequences.count * in.shape.heads));
  dispatch_cuda(in.r.dtype(), [&](auto zero) {
    using T = decltype(zero);
    wkv5::weights_kernel<<<grid, 128, 0, stream>>>(head, pointer<T>(in.r), pointer<T>(in.k), wkv5::decays_of<T>(in),
                                                   pointer<float>(in.bonus), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda

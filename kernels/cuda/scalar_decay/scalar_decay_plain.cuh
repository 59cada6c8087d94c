#pragma once
/// The scalar-decay chunk form in float32 without tensor cores, any sizes: scores and local states of all chunks, the sequential
/// pass over states, outputs; backward likewise.
#include "kernels/cuda/device/plain_tile.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay.cuh"

namespace saccade::cuda::decay {

static_assert(kChunk == plain::kTile);
using plain::kThreads;

/// Decays of a chunk of one head: G, e^{G}, e^{G_last − G} and the steps.
struct Decays {
  float running[kChunk], head[kChunk], tail[kChunk], step[kChunk];

  template <class T>
  __device__ void load(const Form<T>& f, const ChunkPosition& p) {
    const float* G = f.running_of(p);
    for (int i = threadIdx.x; i < kChunk; i += kThreads) {
      const int token = min(i, p.size - 1);
      running[i] = G ? G[token] : 0.0f;
      head[i] = expf(running[i]);
      tail[i] = G ? expf(G[p.size - 1] - running[i]) : 1.0f;
      step[i] = f.step ? f.step[f.line(p) + token] : 1.0f;
    }
  }
  __device__ float pair(int i, int j) const { return j <= i ? expf(running[i] - running[j]) : 0.0f; }
  __device__ float last() const { return head[kChunk - 1]; }
};

/// Launch sizes.
template <class T>
struct Grid {
  unsigned heads, groups, key_tiles, width_tiles;
  dim3 chain;
  explicit Grid(const Form<T>& f, int64_t batch)
      : heads(static_cast<unsigned>(batch * f.chunks * f.heads)),
        groups(static_cast<unsigned>(batch * f.chunks * f.groups)),
        key_tiles(blocks_for(f.keys, plain::kTile)),
        width_tiles(blocks_for(f.width, plain::kTile)),
        chain(static_cast<unsigned>(batch * f.heads), blocks_for(int64_t{f.keys} * f.width, kThreads)) {}
};

/// Scores and states of all chunks.
void plain_states(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& end);
/// Their gradients, from d_o of all tokens.
void plain_state_gradients(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out);

void plain_forward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end);
void plain_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out);

}  // namespace saccade::cuda::decay

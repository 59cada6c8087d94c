#pragma once
/// A chunk of one head of the scalar-decay form, in kernels.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/scalar_decay/scalar_decay_cuda.h"

namespace saccade::cuda::decay {

constexpr int kChunk = DecayForm::kChunk;

struct ChunkPosition {
  int b, c, h, group, first, size;  ///< first: token of the sequence
};

template <class T>
struct Form {
  int length, heads, groups, keys, width, chunks, segments, segment_chunks, decays;
  const T *q, *k, *x;
  const float *step, *running, *skip, *start;

  explicit Form(const DecayForm& in)
      : length(static_cast<int>(in.x.dim(1))),
        heads(static_cast<int>(in.x.dim(2))),
        groups(static_cast<int>(in.q.dim(2))),
        keys(static_cast<int>(in.q.dim(3))),
        width(static_cast<int>(in.x.dim(3))),
        chunks(static_cast<int>(in.chunks())),
        segments(static_cast<int>(in.segments())),
        segment_chunks(static_cast<int>(in.segment_chunks())),
        decays(in.running ? static_cast<int>(in.running.dim(1)) : 0),
        q(pointer<T>(in.q)),
        k(pointer<T>(in.k)),
        x(pointer<T>(in.x)),
        step(at(in.step)),
        running(at(in.running)),
        skip(at(in.skip)),
        start(at(in.start)) {}

  /// From a block index; `per_chunk` heads or groups.
  __device__ ChunkPosition place(int index, int per_chunk) const {
    ChunkPosition p{};
    const int unit = index % per_chunk;
    p.h = per_chunk == heads ? unit : 0;
    p.group = per_chunk == heads ? unit * groups / heads : unit;
    p.c = index / per_chunk % chunks, p.b = index / per_chunk / chunks;
    p.first = p.c * kChunk, p.size = min(kChunk, length - p.first);
    return p;
  }
  __device__ int64_t key_row(const ChunkPosition& p, int i) const {
    return ((int64_t{p.b} * length + p.first + i) * groups + p.group) * keys;
  }
  __device__ int64_t value_row(const ChunkPosition& p, int i) const {
    return ((int64_t{p.b} * length + p.first + i) * heads + p.h) * width;
  }
  __device__ int64_t line(const ChunkPosition& p) const { return (int64_t{p.b} * heads + p.h) * length + p.first; }
  __device__ const float* running_of(const ChunkPosition& p) const {
    return running ? running + (int64_t{p.b} * decays + (decays > 1 ? p.h : 0)) * length + p.first : nullptr;
  }
  __device__ int64_t state(int b, int c, int h) const { return ((int64_t{b} * (chunks + 1) + c) * heads + h) * keys * width; }
  __device__ int64_t scores(const ChunkPosition& p) const { return ((int64_t{p.b} * chunks + p.c) * groups + p.group) * kChunk * kChunk; }
  __device__ int64_t head_scores(const ChunkPosition& p) const { return ((int64_t{p.b} * chunks + p.c) * heads + p.h) * kChunk * kChunk; }
  __device__ bool empty_state(const ChunkPosition& p) const { return p.c == 0 && !start; }

 private:
  static const float* at(const Tensor& x) { return x ? pointer<float>(x) : nullptr; }
};

}  // namespace saccade::cuda::decay

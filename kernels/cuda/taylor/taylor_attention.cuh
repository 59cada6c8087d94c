#pragma once
/// Sizes and addresses of Taylor attention, in kernels.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/taylor_attention/taylor_attention_cuda.h"

namespace saccade::cuda::taylor {

constexpr float kEpsilon = 1e-12f;

/// q, k [B, T, H, d]   v [B, T, H, V]
template <class T>
struct Heads {
  int batch, length, heads, d, values;
  int segment;   ///< tokens per segment; pairs do not cross segments
  bool carried;  ///< whether a carried state comes before the first segment
  float scale;   ///< 1 / √d
  const T *q, *k, *v;

  Heads(const Tensor& query, const Tensor& key, const Tensor& value, const TaylorSegments& segments = {}, const Tensor& state = {})
      : batch(static_cast<int>(query.dim(0))),
        length(static_cast<int>(query.dim(1))),
        heads(static_cast<int>(query.dim(2))),
        d(static_cast<int>(query.dim(3))),
        values(static_cast<int>(value.dim(3))),
        segment(segments.past ? static_cast<int>(segments.length) : length),
        carried(static_cast<bool>(state)),
        scale(1.0f / sqrtf(static_cast<float>(d))),
        q(pointer<T>(query)),
        k(pointer<T>(key)),
        v(pointer<T>(value)) {}

  __device__ int64_t row(int head, int t) const { return (int64_t{head / heads} * length + t) * heads + head % heads; }
  __device__ int64_t key(int head, int t) const { return row(head, t) * d; }
  __device__ int64_t value(int head, int t) const { return row(head, t) * values; }
  __device__ int64_t line(int head) const { return int64_t{head} * length; }
  __host__ __device__ int count() const { return batch * heads; }

  /// Segments with tokens before them: all but the first, behind a carried state all.
  __host__ __device__ int boundaries() const { return (length - 1) / segment + (carried ? 1 : 0); }
  __host__ __device__ int first_past() const { return carried ? 0 : segment; }  ///< first token of the first one of these
  __device__ int segment_begin(int t) const { return t / segment * segment; }
  __device__ int segment_end(int t) const { return min(segment_begin(t) + segment, length); }
};

/// 1 + s + s² / 2
__device__ __forceinline__ float series(float s) { return fmaf(s, fmaf(0.5f, s, 1.0f), 1.0f); }

/// Arguments of the backward pass; targets null where not wanted.
template <class T>
struct Gradients {
  const T* d_o;
  const float* denominator;
  float* d_denominator;
  T *dn, *dq, *dk, *dv;
  bool add_q, add_k, add_v;

  Gradients() = default;
  explicit Gradients(const TaylorGradients& out)
      : d_o(pointer<T>(out.d_o)),
        denominator(pointer<float>(out.denominator)),
        d_denominator(pointer<float>(out.d_denominator)),
        dn(out.dn ? pointer<T>(out.dn) : nullptr),
        dq(at(out.dq)),
        dk(at(out.dk)),
        dv(at(out.dv)),
        add_q(out.dq.add),
        add_k(out.dk.add),
        add_v(out.dv.add) {}

 private:
  static T* at(const GradTarget& target) { return target ? pointer<T>(target.tensor) : nullptr; }
};

/// On tensor cores.
void forward_on_tensor_cores(Stream stream, const Heads<bf16>& x, bf16* o, float* denominator);
void backward_on_tensor_cores(Stream stream, const Heads<bf16>& x, const Gradients<bf16>& g, const bf16* o);

/// Adds the earlier segments to o [B, T, H, V] and the denominators [B, H, T] of the pairs; computes their states, `past`
/// [B H, boundaries, F, V + 1]. `state` [B, H, F, V + 1] where x.carried, else null: comes before the first segment, and is updated.
template <class T>
void add_past(Stream stream, const Heads<T>& x, float* past, float* state, T* o, float* denominator);
/// Adds the gradients through the states between segments to those of the pairs; reads d_denominator, and for bf16 dn.
template <class T>
void add_state_gradients(Stream stream, const Heads<T>& x, const Gradients<T>& g, const float* past, float* future);

}  // namespace saccade::cuda::taylor

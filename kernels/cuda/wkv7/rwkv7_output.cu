#include "kernels/cuda/device/slices.cuh"
#include "kernels/ops/norm/norm_cuda.h"
#include "kernels/ops/rwkv7/rwkv7_output_cuda.h"

namespace saccade::cuda {
namespace {

template <class T>
struct Inputs {
  const T *y, *r, *k, *v, *g;
  const float* r_k;
  explicit Inputs(const Rwkv7Output& in)
      : y(pointer<T>(in.y)),
        r(pointer<T>(in.r)),
        k(pointer<T>(in.k)),
        v(pointer<T>(in.v)),
        g(pointer<T>(in.g)),
        r_k(pointer<float>(in.r_k)) {}
};

template <class Mine>
__device__ __forceinline__ Mine product(const Mine& a, const Mine& b) {
  Mine p;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof p.v / sizeof *p.v); ++i) p.v[i] = a.v[i] * b.v[i];
  return p;
}

template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads) rwkv7_output_kernel(Slices s, Inputs<T> in, T* out) {
  Team team(s);
  using Mine = typename Team::Mine;
  const Mine r_k = team.parameter(in.r_k);
  while (team.next()) {
    Mine y = team.load(in.y);
    const Mine v = team.load(in.v), g = team.load(in.g);
    const float own = team.dot(product(team.load(in.r), team.load(in.k)), r_k);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) y.v[i] = (y.v[i] + own * v.v[i]) * g.v[i];
    team.store(out, y);
  }
}

template <class T>
struct Goals {
  Goal<T> y, r, k, v, g;
};

/// With e = d_out ∘ g: dy = e, dg = d_out (y + own v), dv = own e, and own's gradient e · v into r, k and r_k.
template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads)
    rwkv7_output_backward_kernel(Slices s, Inputs<T> in, const T* d_out, Goals<T> to, float* parts) {
  Team team(s);
  using Mine = typename Team::Mine;
  Mine d_r_k;
  while (team.next()) {
    const Mine r_k = team.parameter(in.r_k), r = team.load(in.r), k = team.load(in.k), v = team.load(in.v), d = team.load(d_out);
    const Mine e = product(d, team.load(in.g));
    const auto sums = team.sum(typename Team::template Sums<2>{Team::own_dot(product(r, k), r_k), Team::own_dot(e, v)});
    const float own = sums.of[0], d_own = sums.of[1];
    team.store(to.y.to, e, to.y.add);
    Mine made = team.load(in.y);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) made.v[i] = d.v[i] * (made.v[i] + own * v.v[i]);
    team.store(to.g.to, made, to.g.add);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) made.v[i] = own * e.v[i];
    team.store(to.v.to, made, to.v.add);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) made.v[i] = d_own * k.v[i] * r_k.v[i];
    team.store(to.r.to, made, to.r.add);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      made.v[i] = d_own * r.v[i] * r_k.v[i];
      d_r_k.v[i] += d_own * r.v[i] * k.v[i];
    }
    team.store(to.k.to, made, to.k.add);
  }
  team.write_part(parts, d_r_k);
}

Slices slices(const Rwkv7Output& in) {
  return {in.y.size() / in.r_k.size(), static_cast<int>(in.r_k.dim(0)), static_cast<int>(in.r_k.dim(1))};
}

}  // namespace

void rwkv7_output(Stream stream, const Rwkv7Output& in, const Tensor& out) {
  const Slices s = slices(in);
  dispatch_cuda(out.dtype(), [&](auto t) {
    using T = decltype(t);
    with_team<T>("rwkv7_output", s, 0, [&](auto team, dim3 grid, unsigned threads) {
      rwkv7_output_kernel<typename decltype(team)::type><<<grid, threads, 0, stream>>>(s, Inputs<T>(in), pointer<T>(out));
    });
  });
}

void rwkv7_output_backward(Stream stream, const Rwkv7Output& in, const Tensor& d_out, const Rwkv7OutputTargets& to, const Tensor& parts) {
  const Slices s = slices(in);
  dispatch_cuda(in.y.dtype(), [&](auto t) {
    using T = decltype(t);
    const Goals<T> goals{goal<T>(to.y), goal<T>(to.r), goal<T>(to.k), goal<T>(to.v), goal<T>(to.g)};
    with_team<T>("rwkv7_output", s, slice_parts(s.tokens, s.groups), [&](auto team, dim3 grid, unsigned threads) {
      rwkv7_output_backward_kernel<typename decltype(team)::type>
          <<<grid, threads, 0, stream>>>(s, Inputs<T>(in), pointer<T>(d_out), goals, pointer<float>(parts));
    });
  });
  if (to.r_k) sum_parts(stream, parts, to.r_k.tensor, to.r_k.add);
}

}  // namespace saccade::cuda

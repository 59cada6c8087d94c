#include "kernels/cuda/device/slices.cuh"
#include "kernels/ops/norm/norm_cuda.h"
#include "kernels/ops/norm/unit_norm_cuda.h"

namespace saccade::cuda {
namespace {

/// 1 / max(sqrt(squares + eps), floor), and whether the root is the larger one.
struct Length {
  float inverse;
  bool normed;
  __device__ Length(float squares, float eps, float floor)
      : inverse(rsqrtf(fmaxf(squares + eps, floor * floor))), normed(squares + eps > floor * floor) {}
};

template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads) unit_norm_kernel(Slices s, const T* x, const float* scale, T* y, float eps, float floor) {
  Team team(s);
  using Mine = typename Team::Mine;
  const Mine factor = scale ? team.parameter(scale) : Mine();
  while (team.next()) {
    Mine z = team.load(x);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i)
      if (scale) z.v[i] *= factor.v[i];
    const Length length(team.dot(z, z), eps, floor);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) z.v[i] *= length.inverse;
    team.store(y, z);
  }
}

/// dz = inverse (dy − z (z · dy) inverse²), the second term while the root is above the floor; dx = dz scale, d_scale = Σ dz x.
template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads)
    unit_norm_backward_kernel(Slices s, const T* x, const float* scale, const T* dy, Goal<T> dx, float* parts, float eps, float floor) {
  Team team(s);
  using Mine = typename Team::Mine;
  const Mine factor = scale ? team.parameter(scale) : Mine();
  Mine d_scale;
  while (team.next()) {
    const Mine in = team.load(x);
    Mine z = in, d = team.load(dy);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i)
      if (scale) z.v[i] *= factor.v[i];
    const auto sums = team.sum(typename Team::template Sums<2>{Team::own_dot(z, z), Team::own_dot(z, d)});
    const Length length(sums.of[0], eps, floor);
    const float along = sums.of[1] * (length.normed ? length.inverse * length.inverse : 0.0f);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      d.v[i] = length.inverse * (d.v[i] - z.v[i] * along);
      d_scale.v[i] += d.v[i] * in.v[i];
      if (scale) d.v[i] *= factor.v[i];
    }
    team.store(dx.to, d, dx.add);
  }
  team.write_part(parts, d_scale);
}

Slices slices(const UnitNorm& in) {
  const int64_t n = in.x.dim(-1), groups = in.scale ? in.scale.size() / n : 1;
  return {in.x.size() / (n * groups), static_cast<int>(groups), static_cast<int>(n)};
}

}  // namespace

void unit_norm(Stream stream, const UnitNorm& in, const Tensor& y) {
  const Slices s = slices(in);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_team<T>("unit_norm", s, 0, [&](auto team, dim3 grid, unsigned threads) {
      unit_norm_kernel<typename decltype(team)::type><<<grid, threads, 0, stream>>>(
          s, pointer<T>(in.x), pointer_or_null<float>(in.scale), pointer<T>(y), static_cast<float>(in.eps), static_cast<float>(in.floor));
    });
  });
}

void unit_norm_backward(Stream stream, const UnitNorm& in, const Tensor& dy, const GradTarget& dx, const GradTarget& d_scale,
                        const Tensor& parts) {
  const Slices s = slices(in);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_team<T>("unit_norm", s, slice_parts(s.tokens, s.groups), [&](auto team, dim3 grid, unsigned threads) {
      unit_norm_backward_kernel<typename decltype(team)::type>
          <<<grid, threads, 0, stream>>>(s, pointer<T>(in.x), pointer_or_null<float>(in.scale), pointer<T>(dy), goal<T>(dx),
                                         pointer_or_null<float>(parts), static_cast<float>(in.eps), static_cast<float>(in.floor));
    });
  });
  if (d_scale) sum_parts(stream, parts, d_scale.tensor, d_scale.add);
}

}  // namespace saccade::cuda

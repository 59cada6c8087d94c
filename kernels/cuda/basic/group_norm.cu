#include "kernels/cuda/device/slices.cuh"
#include "kernels/ops/group_norm/group_norm_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

/// x becomes x − mean, 0 outside the slice.
template <class Team>
__device__ __forceinline__ void centre(Team& team, typename Team::Mine& x, int n) {
  const float mean = team.total(x) / static_cast<float>(n);
#pragma unroll
  for (int i = 0; i < Team::kCount; ++i) x.v[i] = team.has(i) ? x.v[i] - mean : 0.0f;
}
__device__ __forceinline__ float inverse_deviation(float squares, int n, float eps) {
  return rsqrtf(squares / static_cast<float>(n) + eps);
}

template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads)
    group_norm_kernel(Slices s, const T* x, const float* weight, const float* bias, T* y, float eps) {
  Team team(s);
  const typename Team::Mine factor = team.parameter(weight), offset = team.parameter(bias);
  while (team.next()) {
    typename Team::Mine z = team.load(x);
    centre(team, z, s.n);
    const float inverse = inverse_deviation(team.dot(z, z), s.n, eps);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) z.v[i] = z.v[i] * inverse * factor.v[i] + offset.v[i];
    team.store(y, z);
  }
}

/// With z the normed slice and e = weight dy: dx = inverse (e − mean(e) − z mean(e z)), d_weight = Σ dy z, d_bias = Σ dy.
template <class Team, class T>
__global__ void __launch_bounds__(Team::kThreads)
    group_norm_backward_kernel(Slices s, const T* x, const float* weight, const T* dy, Goal<T> dx, float* weight_parts, float* bias_parts,
                               float eps) {
  Team team(s);
  using Mine = typename Team::Mine;
  const Mine factor = team.parameter(weight);
  Mine d_weight, d_bias;
  while (team.next()) {
    Mine z = team.load(x), e = team.load(dy), product;
    centre(team, z, s.n);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      product.v[i] = e.v[i] * z.v[i];
      d_bias.v[i] += e.v[i];
      e.v[i] *= factor.v[i];
    }
    const auto sums = team.sum(typename Team::template Sums<3>{Team::own_dot(z, z), Team::own_total(e), Team::own_dot(e, z)});
    const float inverse = inverse_deviation(sums.of[0], s.n, eps), offset = sums.of[1] / static_cast<float>(s.n),
                slope = sums.of[2] * inverse * inverse / static_cast<float>(s.n);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      d_weight.v[i] += product.v[i] * inverse;
      e.v[i] = inverse * (e.v[i] - offset - z.v[i] * slope);
    }
    team.store(dx.to, e, dx.add);
  }
  team.write_part(weight_parts, d_weight);
  team.write_part(bias_parts, d_bias);
}

Slices slices(const Tensor& x, const Tensor& weight, int64_t groups) {
  return {x.size() / weight.size(), static_cast<int>(groups), static_cast<int>(weight.size() / groups)};
}

}  // namespace

void group_norm(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t groups, double eps, const Tensor& y) {
  const Slices s = slices(x, weight, groups);
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_team<T>("group_norm", s, 0, [&](auto team, dim3 grid, unsigned threads) {
      group_norm_kernel<typename decltype(team)::type><<<grid, threads, 0, stream>>>(
          s, pointer<T>(x), pointer<float>(weight), pointer<float>(bias), pointer<T>(y), static_cast<float>(eps));
    });
  });
}

void group_norm_backward(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& dy, int64_t groups, double eps,
                         const GradTarget& dx, const GradTarget& d_weight, const GradTarget& d_bias, const Tensor& weight_parts,
                         const Tensor& bias_parts) {
  const Slices s = slices(x, weight, groups);
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_team<T>("group_norm", s, slice_parts(s.tokens, s.groups), [&](auto team, dim3 grid, unsigned threads) {
      group_norm_backward_kernel<typename decltype(team)::type>
          <<<grid, threads, 0, stream>>>(s, pointer<T>(x), pointer<float>(weight), pointer<T>(dy), goal<T>(dx),
                                         pointer<float>(weight_parts), pointer<float>(bias_parts), static_cast<float>(eps));
    });
  });
  if (d_weight) sum_parts(stream, weight_parts, d_weight.tensor, d_weight.add);
  if (d_bias) sum_parts(stream, bias_parts, d_bias.tensor, d_bias.add);
}

}  // namespace saccade::cuda

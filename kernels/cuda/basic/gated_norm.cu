#include "kernels/cuda/device/slices.cuh"
#include "kernels/ops/gated_norm/gated_norm_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

template <bool kGateFirst, class Team, class T>
__global__ void __launch_bounds__(Team::kThreads)
    gated_norm_kernel(Slices s, const T* x, const T* z, const float* weight, T* y, float eps) {
  Team team(s);
  using Mine = typename Team::Mine;
  const Mine factor = team.parameter(weight);
  while (team.next()) {
    Mine u = team.load(x), gate = team.load(z);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      gate.v[i] = silu(gate.v[i]);
      if constexpr (kGateFirst) u.v[i] *= gate.v[i];
    }
    const float r = rsqrtf(team.dot(u, u) / static_cast<float>(s.n) + eps);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) u.v[i] *= r * factor.v[i] * (kGateFirst ? 1.0f : gate.v[i]);
    team.store(y, u);
  }
}

/// With u the row that is normed and e = d_(normed row ∘ weight):  d_u = r (e ∘ weight − u r² mean(e ∘ weight ∘ u)),  d_weight = Σ e ∘ u r
///   gate first: u = x silu(z), e = dy, dx = d_u silu(z), dz = d_u x silu'(z)
///   gate last:  u = x, e = dy silu(z), dx = d_u, dz = dy u r weight silu'(z)
template <bool kGateFirst, class Team, class T>
__global__ void __launch_bounds__(Team::kThreads) gated_norm_backward_kernel(Slices s, const T* x, const T* z, const float* weight,
                                                                             const T* dy, Goal<T> dx, Goal<T> dz, float* parts, float eps) {
  Team team(s);
  using Mine = typename Team::Mine;
  Mine d_weight;
  while (team.next()) {
    const Mine in = team.load(x), gate = team.load(z), d = team.load(dy), factor = team.parameter(weight);
    Mine u = in, e = d, s_gate;
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      s_gate.v[i] = sigmoid(gate.v[i]);
      (kGateFirst ? u : e).v[i] *= gate.v[i] * s_gate.v[i];
    }
    Mine d_z;  // e ∘ u first
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      d_z.v[i] = e.v[i] * u.v[i];
      e.v[i] *= factor.v[i];
    }
    const auto sums = team.sum(typename Team::template Sums<2>{Team::own_dot(u, u), Team::own_dot(e, u)});
    const float r = rsqrtf(sums.of[0] / static_cast<float>(s.n) + eps), mean = sums.of[1] * r * r / static_cast<float>(s.n);
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) d_weight.v[i] += d_z.v[i] * r;
#pragma unroll
    for (int i = 0; i < Team::kCount; ++i) {
      const float d_u = r * (e.v[i] - u.v[i] * mean);
      const float slope = s_gate.v[i] * (1.0f + gate.v[i] * (1.0f - s_gate.v[i]));
      d_z.v[i] = slope * (kGateFirst ? d_u * in.v[i] : d.v[i] * u.v[i] * r * factor.v[i]);
      e.v[i] = kGateFirst ? d_u * gate.v[i] * s_gate.v[i] : d_u;
    }
    team.store(dx.to, e, dx.add);
    team.store(dz.to, d_z, dz.add);
  }
  team.write_part(parts, d_weight);
}

Slices slices(const GatedNorm& in) {
  return {in.x.size() / in.weight.size(), static_cast<int>(in.groups), static_cast<int>(in.weight.size() / in.groups)};
}

/// f(type, whether the gate comes first).
template <class F>
void with_kind(const GatedNorm& in, F&& f) {
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    if (in.gate_first)
      f(t, std::true_type{});
    else
      f(t, std::false_type{});
  });
}

}  // namespace

void gated_norm(Stream stream, const GatedNorm& in, const Tensor& y) {
  const Slices s = slices(in);
  with_kind(in, [&](auto t, auto first) {
    using T = decltype(t);
    with_team<T>("gated_norm", s, 0, [&](auto team, dim3 grid, unsigned threads) {
      gated_norm_kernel<decltype(first)::value, typename decltype(team)::type><<<grid, threads, 0, stream>>>(
          s, pointer<T>(in.x), pointer<T>(in.z), pointer<float>(in.weight), pointer<T>(y), static_cast<float>(in.eps));
    });
  });
}

void gated_norm_backward(Stream stream, const GatedNorm& in, const Tensor& dy, const GradTarget& dx, const GradTarget& dz,
                         const GradTarget& d_weight, const Tensor& parts) {
  const Slices s = slices(in);
  with_kind(in, [&](auto t, auto first) {
    using T = decltype(t);
    with_team<T>("gated_norm", s, slice_parts(s.tokens, s.groups), [&](auto team, dim3 grid, unsigned threads) {
      gated_norm_backward_kernel<decltype(first)::value, typename decltype(team)::type>
          <<<grid, threads, 0, stream>>>(s, pointer<T>(in.x), pointer<T>(in.z), pointer<float>(in.weight), pointer<T>(dy), goal<T>(dx),
                                         goal<T>(dz), pointer_or_null<float>(parts), static_cast<float>(in.eps));
    });
  });
  if (d_weight) sum_parts(stream, parts, d_weight.tensor, d_weight.add);
}

}  // namespace saccade::cuda

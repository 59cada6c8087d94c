#include "kernels/ops/read_statistics/read_statistics.h"

#include <cmath>
#include <limits>

#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/read_statistics/read_statistics_cuda.h"

namespace saccade {
namespace cpu {
namespace {

template <class T>
void sums_of_head(const T* weights, int64_t length, int64_t near, double* sums) {
  double distance = 0, outside = 0;
  for (int64_t t = 0; t < length; ++t)
    for (int64_t j = 0; j <= t; ++j) {
      const auto w = static_cast<double>(weights[t * length + j]);
      distance += w * static_cast<double>(t - j);
      if (t - j >= near) outside += w;
    }
  sums[0] = distance;
  sums[1] = outside;
}

template <class T>
void reads_of_query(const T* weights, int64_t t, int64_t near, double* reads) {
  double total = 0;
  for (int64_t j = 0; j <= t; ++j) total += std::abs(static_cast<double>(weights[j]));
  const double nothing = total > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  double entropy = nothing, distance = nothing, outside = nothing;
  for (int64_t j = 0; j <= t && total > 0; ++j) {
    const double p = std::abs(static_cast<double>(weights[j])) / total;
    if (p > 0) entropy -= p * std::log(p);
    distance += p * static_cast<double>(t - j);
    if (t - j >= near) outside += p;
  }
  reads[0] = entropy;
  reads[1] = distance;
  reads[2] = outside;
}

}  // namespace
}  // namespace cpu

namespace {

void expect_maps(const Tensor& weights, const char* op) {
  expect(weights.rank() == 3 && weights.dim(1) == weights.dim(2), op, "weights are ", weights, "; expected [H, T, T]");
}

Cost cost(const Tensor& weights, const Tensor& out, double flops_a_weight) {
  return {flops_a_weight * static_cast<double>(weights.size()) / 2, static_cast<double>(weights.bytes() / 2 + out.bytes())};
}

}  // namespace

Tensor read_sums(Tape& tape, const Tensor& weights, int64_t near) {
  expect_maps(weights, "read_sums");
  const int64_t heads = weights.dim(0), length = weights.dim(1);
  const Tensor sums = tape.empty({heads, 2}, DType::f64);
  tape.run(
      "read_sums", cost(weights, sums, 3),
      [&] {
        dispatch(weights.dtype(), [&](auto zero) {
          const auto* w = weights.data<decltype(zero)>();
          parallel_for(heads, [&](int64_t h) { cpu::sums_of_head(w + h * length * length, length, near, sums.data<double>() + 2 * h); });
        });
      },
      [&] { cuda::read_sums(tape.stream(), weights, near, sums); });
  return sums;
}

Tensor query_reads(Tape& tape, const Tensor& weights, int64_t near) {
  expect_maps(weights, "query_reads");
  const int64_t heads = weights.dim(0), length = weights.dim(1);
  const Tensor reads = tape.empty({heads, length, 3}, DType::f64);
  tape.run(
      "query_reads", cost(weights, reads, 8),
      [&] {
        dispatch(weights.dtype(), [&](auto zero) {
          const auto* w = weights.data<decltype(zero)>();
          parallel_for(heads * length,
                       [&](int64_t row) { cpu::reads_of_query(w + row * length, row % length, near, reads.data<double>() + 3 * row); });
        });
      },
      [&] { cuda::query_reads(tape.stream(), weights, near, reads); });
  return reads;
}

}  // namespace saccade

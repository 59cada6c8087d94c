#include "kernels/ops/avey/decoding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"

namespace saccade::avey {
namespace {

constexpr double kNormEps = 1e-8;

/// Runs body(T of the dtype) on the CPU.
template <class Body>
void on_cpu(Tape& tape, const char* name, const Cost& cost, const Tensor& like, Body body) {
  tape.run(name, cost, [&] { dispatch(like.dtype(), body); });
}

double bytes(const Tensor& x) { return static_cast<double>(x.bytes()); }

}  // namespace

Tensor unit_rows(Tape& tape, const Tensor& x) {
  const Tensor units = tape.empty(x.shape(), x.dtype());
  const int64_t D = x.dim(2), rows = x.size() / D;
  on_cpu(tape, "avey.unit_rows", {3.0 * static_cast<double>(x.size()), 2 * bytes(x)}, x, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(rows, [&](int64_t row) {
      const T* from = x.data<T>() + row * D;
      T sum = 0;
      for (int64_t d = 0; d < D; ++d) sum += from[d] * from[d];
      const T scale = 1 / (std::sqrt(sum) + static_cast<T>(kNormEps));
      for (int64_t d = 0; d < D; ++d) units.data<T>()[row * D + d] = from[d] * scale;
    });
  });
  return units;
}

void add_maxsim(Tape& tape, const Tensor& units, int64_t split, int64_t candidates, int64_t from, int64_t to, const Tensor& scores) {
  const int64_t B = units.dim(0), capacity = units.dim(1), D = units.dim(2), N = scores.dim(1), queries = to - from;
  expect(scores.dim(0) == B && candidates <= N && candidates * split <= capacity && to <= capacity && scores.dtype() == units.dtype(),
         "avey.add_maxsim", "units are ", units, ", scores ", scores, ", ", candidates, " candidates of ", split, " tokens");
  if (queries <= 0 || candidates == 0) return;
  const double read = static_cast<double>(B * candidates * split * D);
  on_cpu(tape, "avey.add_maxsim", {2.0 * static_cast<double>(queries) * read, read * static_cast<double>(byte_size(units.dtype()))}, units,
         [&](auto zero) {
           using T = decltype(zero);
           parallel_for(B * candidates, [&](int64_t task) {
             const int64_t b = task / candidates, p = task % candidates;
             const T* sequence = units.data<T>() + b * capacity * D;
             thread_local std::vector<T> cosines;
             cosines.resize(static_cast<size_t>(queries * split));
             cpu::gemm_serial<T>(false, true, queries, split, D, T(1), sequence + from * D, D, sequence + p * split * D, D, false,
                                 cosines.data(), split);
             T sum = 0;
             for (int64_t a = 0; a < queries; ++a) sum += *std::max_element(cosines.data() + a * split, cosines.data() + (a + 1) * split);
             scores.data<T>()[b * N + p] += sum;
           });
         });
}

Tensor split_context(Tape& tape, const Tensor& x, const Ranked& ranked, const SplitContext& c) {
  const int64_t B = x.dim(0), capacity = x.dim(1), D = x.dim(2), k = ranked.chosen ? ranked.chosen.dim(1) : 0;
  expect(c.count <= k && c.first_own + c.own <= capacity, "avey.split_context", "x is ", x, ", ", c.count, " splits of ", k, ", own rows ",
         c.first_own, " + ", c.own);
  const Tensor h = tape.empty({B, c.rows(), D}, x.dtype());
  on_cpu(tape, "avey.split_context", {static_cast<double>(h.size()), 2 * bytes(h)}, x, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t b = 0; b < B; ++b) {
      const T* sequence = x.data<T>() + b * capacity * D;
      T* to = h.data<T>() + b * c.rows() * D;
      std::fill_n(to, c.zeros * D, T(0));
      to += c.zeros * D;
      for (int64_t slot = 0; slot < c.count; ++slot, to += c.split * D) {
        const T weight = ranked.weights.data<T>()[b * k + slot];
        const T* chosen = sequence + ranked.chosen.data<int32_t>()[b * k + slot] * c.split * D;
        std::transform(chosen, chosen + c.split * D, to, [&](T value) { return weight * value; });
      }
      std::copy_n(sequence + c.first_own * D, c.own * D, to);
    }
  });
  return h;
}

Tensor last_rows(Tape& tape, const Tensor& x, int64_t n) {
  const int64_t B = x.dim(0), length = x.dim(1), D = x.dim(2);
  expect(n >= 1 && n <= length, "avey.last_rows", "x is ", x, ", ", n, " rows");
  const Tensor rows = tape.empty({B, n, D}, x.dtype());
  on_cpu(tape, "avey.last_rows", {0, 2 * bytes(rows)}, x, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t b = 0; b < B; ++b) std::copy_n(x.data<T>() + ((b + 1) * length - n) * D, n * D, rows.data<T>() + b * n * D);
  });
  return rows;
}

}  // namespace saccade::avey

#include "kernels/ops/taylor_attention/mask_write.h"

#include <cmath>
#include <vector>

#include "kernels/engine/parallel.h"
#include "kernels/ops/taylor_attention/cpu_chunks.h"

namespace saccade {
namespace {

/// One head of sequence 0: its rows, and how far apart they are.
template <class T>
struct Head {
  const T *q, *k, *v;
  T* o;
  int64_t keys, values, heads;

  double mass(int64_t t, int64_t j) const {
    double dot = 0;
    for (int64_t i = 0; i < keys; ++i) dot += static_cast<double>(q[t * heads * keys + i]) * static_cast<double>(k[j * heads * keys + i]);
    const double s = dot / std::sqrt(static_cast<double>(keys));
    return 1 + s + s * s / 2;
  }

  void write_row(int64_t t, int64_t masked) const {
    std::vector<double> sum(static_cast<size_t>(values));
    double total = cpu::kTaylorEpsilon;
    for (int64_t j = 0; j <= t; ++j) {
      if (j == masked) continue;
      const double p = mass(t, j);
      total += p;
      for (int64_t i = 0; i < values; ++i) sum[static_cast<size_t>(i)] += p * static_cast<double>(v[j * heads * values + i]);
    }
    for (int64_t i = 0; i < values; ++i) o[t * heads * values + i] = static_cast<T>(sum[static_cast<size_t>(i)] / total);
  }
};

}  // namespace

void mask_taylor_write(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, int64_t head, int64_t token, const Tensor& o) {
  const int64_t length = q.dim(1), heads = q.dim(2), keys = q.dim(3), values = v.dim(3);
  if (head < 0 || head >= heads || token < 0 || token >= length)
    throw UsageError("[mask_taylor_write] has no token " + std::to_string(token) + " of head " + std::to_string(head));
  const double pairs = static_cast<double>((length - token) * (length + token) / 2 * (keys + values));
  tape.run("mask_taylor_write", {2 * pairs, 4 * pairs}, [&] {
    dispatch(v.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Head<T> rows{q.data<T>() + head * keys,
                         k.data<T>() + head * keys,
                         v.data<T>() + head * values,
                         o.data<T>() + head * values,
                         keys,
                         values,
                         heads};
      parallel_for(length - token, [&](int64_t row) { rows.write_row(token + row, token); });
    });
  });
}

}  // namespace saccade

#pragma once
#include <cmath>
#include <functional>

#include "kernels/ops/attention/attention.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

/// Element of a four-dimensional array; a first dimension of 1 is shared by all b.
inline double at(const Array& x, int64_t b, int64_t i, int64_t j, int64_t l) {
  return x.values[static_cast<size_t>((((x.shape[0] == 1 ? 0 : b) * x.shape[1] + i) * x.shape[2] + j) * x.shape[3] + l)];
}

/// ALiBi's slopes of `heads` heads, in the manner of the code released with arXiv:2108.12409 (get_slopes) where that is wanted.
inline std::vector<double> plain_slopes(int64_t heads, bool released) {
  std::vector<double> slopes;
  if (!released || (heads & (heads - 1)) == 0) {
    for (int64_t h = 1; h <= heads; ++h) slopes.push_back(std::pow(2.0, -8.0 * static_cast<double>(h) / static_cast<double>(heads)));
    return slopes;
  }
  int64_t closest = 1;
  while (2 * closest <= heads) closest *= 2;
  slopes = plain_slopes(closest, true);
  const std::vector<double> finer = plain_slopes(2 * closest, true);
  for (size_t i = 0; static_cast<int64_t>(slopes.size()) < heads; i += 2) slopes.push_back(finer[i]);
  return slopes;
}

/// Scores [B, H, T, T] of q, k [B or 1, T, H, d] from the equation; −inf where the query does not see the key.
inline Array plain_scores(const Array& q, const Array& k, int64_t batch, const ScoreOptions& options) {
  const int64_t length = k.shape[1], heads = k.shape[2], width = k.shape[3];
  Array s{{batch, heads, length, length}, {}, false};
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < length; ++t)
        for (int64_t j = 0; j < length; ++j) {
          double dot = 0;
          for (int64_t i = 0; i < width; ++i) dot += at(q, b, t, h, i) * at(k, b, j, h, i);
          const double slope = options.alibi ? plain_slopes(heads, options.released_alibi)[static_cast<size_t>(h)] : 0.0;
          const bool visible = j <= t && (options.window == 0 || j > t - options.window);
          s.values.push_back(visible ? options.scale * dot - slope * static_cast<double>(t - j) : -INFINITY);
        }
  return s;
}

/// Softmax attention written from its equation: the truth for short sequences.
struct PlainAttention {
  Array o, lse, entropy;
  Array weights;  ///< [B, H, T, T]
};
/// s [B, H, T, T] as plain_scores gives it, with more keys hidden where wanted.
inline PlainAttention plain_attention(const Array& s, const Array& v) {
  const int64_t batch = v.shape[0], length = v.shape[1], heads = v.shape[2], width = v.shape[3];
  const Shape lines{batch, heads, length};
  PlainAttention out{{v.shape, std::vector<double>(v.values.size()), false}, {lines, {}, false}, {lines, {}, false}, s};
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < length; ++t) {
        double max = -INFINITY, sum = 0, entropy = 0;
        for (int64_t j = 0; j <= t; ++j) max = std::max(max, at(s, b, h, t, j));
        for (int64_t j = 0; j <= t; ++j) sum += std::exp(at(s, b, h, t, j) - max);
        for (int64_t j = 0; j < length; ++j) {
          const double p = std::exp(at(s, b, h, t, j) - max) / sum;
          out.weights.values[static_cast<size_t>(((b * heads + h) * length + t) * length + j)] = p;
          entropy -= p > 0 ? p * std::log(p) : 0.0;
          for (int64_t i = 0; i < width; ++i)
            out.o.values[static_cast<size_t>(((b * length + t) * heads + h) * width + i)] += p * at(v, b, j, h, i);
        }
        out.lse.values.push_back(max + std::log(sum));
        out.entropy.values.push_back(entropy);
      }
  return out;
}

/// weights [H, T, T] of one sequence out of [B, H, T, T].
inline Array one_sequence(const Array& weights, int64_t b) {
  const int64_t size = weights.shape[1] * weights.shape[2] * weights.shape[3];
  return {{weights.shape[1], weights.shape[2], weights.shape[3]},
          {weights.values.begin() + b * size, weights.values.begin() + (b + 1) * size},
          false};
}

/// Queries, keys and values [B, T, H, d].
inline std::vector<Array> random_heads(int64_t batch, int64_t length, int64_t heads, int64_t width, double spread = 1.0) {
  const Shape shape{batch, length, heads, width};
  return {random_array(shape, 1, spread), random_array(shape, 2, spread), random_array(shape, 3)};
}

}  // namespace saccade::test

#include "kernels/ops/avey/reads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ops/avey/context_weights.h"

namespace saccade::avey {
namespace {

constexpr int64_t kBlock = 64;

template <class T>
void own_weights(const T* z, const T* A, int64_t r, const ContextLayout& layout, bool dynamic, const ContextRows& rows, T* weights) {
  PackedContext<T> packed;
  packed.load(z, r, rows);
  const int64_t C = layout.context_width(), before = rows.runs[0].count + rows.runs[1].count;
  std::vector<T> block(static_cast<size_t>(kBlock * packed.n));
  each_query_block(rows, 2, kBlock, [&](int64_t first, int64_t, int64_t count) {
    if (dynamic) gram_block(packed, first, count, block.data());
    weigh_block(block.data(), packed.inverse.data(), A + rows.first_position * (C + 1), C, first, count, dynamic);
    for (int64_t t = 0; t < count; ++t) {
      T* to = weights + (first - before + t) * packed.n;
      std::fill(to, to + packed.n, T(0));
      for (int64_t j = 0; j < first + count; ++j) to[j] = std::abs(block[static_cast<size_t>(t * (first + count) + j)]);
    }
  });
}

/// Calls f(head, token, source position, share) for every read of context (b, i), tokens and heads in order.
template <class T, class F>
void each_share(const Tensor& weights, const Ranked& ranked, const ContextLayout& l, int64_t heads, int64_t b, int64_t i, F&& f) {
  const ContextRows rows = context_rows(l, b, i);
  const int64_t own = l.own_count(i), n = rows.size(), padding = rows.runs[0].count, before = padding + rows.runs[1].count;
  const int64_t slot0 = (b * l.splits() + i) * l.top_k;
  std::vector<int64_t> source(static_cast<size_t>(n), -1);
  std::vector<double> scale(static_cast<size_t>(n), 0.0);
  for (int64_t j = padding; j < n; ++j) {
    const int64_t slot = slot0 + (j - padding) / l.split;
    const bool chosen = j < before;
    source[static_cast<size_t>(j)] =
        chosen ? ranked.chosen.data<int32_t>()[slot] * l.split + (j - padding) % l.split : i * l.split + j - before;
    scale[static_cast<size_t>(j)] = chosen ? std::abs(static_cast<double>(ranked.weights.data<T>()[slot])) : 1.0;
  }
  const T* w = weights.data<T>();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < own; ++t, w += n) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += std::abs(static_cast<double>(w[j])) * scale[static_cast<size_t>(j)];
      for (int64_t j = padding; j <= before + t; ++j)
        f(h, i * l.split + t, source[static_cast<size_t>(j)], std::abs(static_cast<double>(w[j])) * scale[static_cast<size_t>(j)] / sum);
    }
}

}  // namespace

Tensor contextualizer_weights(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, int64_t b,
                              int64_t i) {
  const ContextRows rows = context_rows(layout, b, i);
  const Tensor weights = tape.empty({1, layout.own_count(i), rows.size()}, Z.dtype());
  const double pairs = static_cast<double>(weights.size());
  tape.run("avey.weights", {2 * pairs * static_cast<double>(Z.dim(1)), static_cast<double>(weights.bytes())}, [&] {
    dispatch(Z.dtype(), [&](auto zero) {
      using T = decltype(zero);
      own_weights<T>(Z.data<T>(), A.data<T>(), Z.dim(1), layout, dynamic, rows, weights.data<T>());
    });
  });
  return weights;
}

Tensor read_map(Tape& tape, const ContextWeights& weights, const Ranked& ranked, const ContextLayout& l, int64_t heads, int64_t b) {
  Tensor map;
  for (int64_t i = 0; i < l.splits(); ++i) {
    const Tensor context = weights(b, i);
    if (!map) map = tape.zeros({heads, l.tokens, l.tokens}, context.dtype());
    tape.run("avey.read_map", {2 * static_cast<double>(context.size()), 2 * static_cast<double>(context.bytes())}, [&] {
      dispatch(context.dtype(), [&](auto zero) {
        using T = decltype(zero);
        T* to = map.data<T>();
        each_share<T>(context, ranked, l, heads, b, i, [&](int64_t h, int64_t t, int64_t j, double share) {
          if (!std::isnan(share)) to[(h * l.tokens + t) * l.tokens + j] = static_cast<T>(share);
        });
      });
    });
  }
  return map;
}

Tensor read_entropy(Tape& tape, const ContextWeights& weights, const Ranked& ranked, const ContextLayout& l, int64_t heads) {
  Tensor entropy;
  for (int64_t b = 0; b < l.batch; ++b)
    for (int64_t i = 0; i < l.splits(); ++i) {
      const Tensor context = weights(b, i);
      if (!entropy) entropy = tape.zeros({l.batch, heads, l.tokens}, context.dtype());
      tape.run("avey.read_entropy", {4 * static_cast<double>(context.size()), static_cast<double>(context.bytes())}, [&] {
        dispatch(context.dtype(), [&](auto zero) {
          using T = decltype(zero);
          T* to = entropy.data<T>() + b * heads * l.tokens;
          each_share<T>(context, ranked, l, heads, b, i, [&](int64_t h, int64_t t, int64_t, double share) {
            if (share != 0) to[h * l.tokens + t] -= static_cast<T>(share * std::log(share));
          });
        });
      });
    }
  return entropy;
}

double ranker_margin(const Ranked& ranked) {
  const int64_t splits = ranked.maxsim.dim(0) * ranked.maxsim.dim(1), N = ranked.maxsim.dim(1), k = ranked.chosen.dim(2);
  return dispatch(ranked.maxsim.dtype(), [&](auto zero) {
    using T = decltype(zero);
    double sum = 0;
    int64_t count = 0;
    for (int64_t s = 0; s < splits; ++s) {
      const int64_t i = s % N;
      if (i <= k) continue;
      std::vector<T> scores(ranked.maxsim.data<T>() + s * N, ranked.maxsim.data<T>() + s * N + i);
      std::partial_sort(scores.begin(), scores.begin() + k + 1, scores.end(), [](T a, T b) { return a > b; });
      sum += static_cast<double>(scores[static_cast<size_t>(k - 1)] - scores[static_cast<size_t>(k)]);
      ++count;
    }
    return count ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace saccade::avey

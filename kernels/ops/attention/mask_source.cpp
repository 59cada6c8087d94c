#include "kernels/ops/attention/mask_source.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ops/attention/head_shape.h"

namespace saccade {
namespace {

struct Row {
  HeadShape shape;
  ScoreOptions options;
  MaskedSource masked;
  int64_t first() const { return options.window > 0 ? std::max<int64_t>(0, masked.query - options.window + 1) : 0; }
};

/// exp(s_tj − max s) of the sources from row.first() on, 0 for the masked one.
template <class T>
std::vector<double> masses(const Row& row, const T* q, const T* k) {
  const int64_t stride = row.shape.stride(), t = row.masked.query;
  const double slope = alibi_slope(row.options, row.masked.head, row.shape.heads), never = -std::numeric_limits<double>::infinity();
  std::vector<double> scores;
  double most = never;
  for (int64_t j = row.first(); j <= t; ++j) {
    double dot = 0;
    for (int64_t i = 0; i < row.shape.width; ++i) dot += static_cast<double>(q[t * stride + i]) * static_cast<double>(k[j * stride + i]);
    scores.push_back(j == row.masked.source ? never : row.options.scale * dot - slope * static_cast<double>(t - j));
    most = std::max(most, scores.back());
  }
  for (double& s : scores) s = s == never ? 0 : std::exp(s - most);
  return scores;
}

template <class T>
void write_row(const Row& row, const T* q, const T* k, const T* v, T* o) {
  const int64_t stride = row.shape.stride(), t = row.masked.query;
  const std::vector<double> mass = masses(row, q, k);
  double total = 0;
  for (const double m : mass) total += m;
  for (int64_t i = 0; i < row.shape.width; ++i) {
    double sum = 0;
    for (size_t n = 0; n < mass.size(); ++n) sum += mass[n] * static_cast<double>(v[(row.first() + static_cast<int64_t>(n)) * stride + i]);
    o[t * stride + i] = static_cast<T>(total > 0 ? sum / total : 0);
  }
}

}  // namespace

void mask_source(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, const MaskedSource& masked,
                 const Tensor& o) {
  const Row row{head_shape("mask_source", q, k, v), options, masked};
  check_window("mask_source", options);
  if (masked.head < 0 || masked.head >= row.shape.heads || masked.query < 0 || masked.query >= row.shape.length)
    throw UsageError("[mask_source] has no query " + std::to_string(masked.query) + " of head " + std::to_string(masked.head));
  if (masked.source < row.first() || masked.source > masked.query)
    throw UsageError("[mask_source] query " + std::to_string(masked.query) + " does not see position " + std::to_string(masked.source) +
                     "; expected " + std::to_string(row.first()) + " to " + std::to_string(masked.query));
  const double pairs = static_cast<double>((masked.query - row.first() + 1) * row.shape.width);
  tape.run("mask_source", {4 * pairs, 8 * pairs}, [&] {
    dispatch(v.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto rows = [&](const Tensor& x) { return row.shape.rows<T>(x, 0, masked.head); };
      write_row<T>(row, rows(q), rows(k), rows(v), rows(o));
    });
  });
}

}  // namespace saccade

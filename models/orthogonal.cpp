#include "models/orthogonal.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/parallel.h"

namespace saccade {
namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t kGrain = 1 << 14;

/// A tall matrix [m, n], m ≥ n, held by columns: element (i, j) is at[j · m + i].
struct Tall {
  int64_t m, n;
  std::vector<double> at;
  double* column(int64_t j) { return at.data() + j * m; }
};

SACCADE_SIMD double dot(const double* x, const double* y, int64_t n) {
  return lane_sum<double>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i] * y[i]; });
}

/// x −= factor · y
SACCADE_SIMD void subtract(double factor, const double* y, double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] -= factor * y[i];
}

/// Reflectors I − τ v vᵀ of a block of columns: V [count, m] (row j is v_j, zeros above its diagonal), T such that their product is
/// I − Vᵀ T V (upper triangular; Schreiber and Van Loan 1989).
struct Block {
  int64_t first, count;
  std::vector<double> v, t;
};

/// Turns columns first … of `a` into R's with one reflection each; signs holds those of R's diagonal.
Block factor(Tall& a, int64_t first, std::vector<double>& signs) {
  Block block{first, std::min(kBlock, a.n - first), {}, {}};
  block.v.assign(static_cast<size_t>(block.count * a.m), 0.0);
  block.t.assign(static_cast<size_t>(block.count * block.count), 0.0);
  for (int64_t j = 0; j < block.count; ++j) {
    const int64_t row = first + j, length = a.m - row;
    double* x = a.column(row) + row;
    double* v = block.v.data() + j * a.m + row;
    const double norm = std::sqrt(dot(x, x, length)), sign = x[0] < 0 ? -1.0 : 1.0;
    std::copy_n(x, length, v);
    v[0] += sign * norm;
    const double squares = dot(v, v, length), tau = squares > 0 ? 2 / squares : 0;
    signs[static_cast<size_t>(row)] = -sign;
    for (int64_t c = row + 1; c < first + block.count; ++c) subtract(tau * dot(v, a.column(c) + row, length), v, a.column(c) + row, length);
    double *t = block.t.data(), along[kBlock];
    t[j * block.count + j] = tau;
    for (int64_t l = 0; l < j; ++l) along[l] = dot(block.v.data() + l * a.m + row, v, length);
    for (int64_t i = 0; i < j; ++i) {  // column j of T: −τ T (V v)
      double sum = 0;
      for (int64_t l = i; l < j; ++l) sum += t[i * block.count + l] * along[l];
      t[i * block.count + j] = -tau * sum;
    }
  }
  return block;
}

/// Columns begin … end−1 of x ← (I − Vᵀ T V) x, with Tᵀ when `transposed`. Rows above the block are not touched.
void reflect(const Block& b, bool transposed, Tall& x, int64_t begin, int64_t end) {
  const int64_t columns = end - begin, below = x.m - b.first;
  if (columns <= 0) return;
  std::vector<double> vx(static_cast<size_t>(columns * b.count)), tvx(vx.size());
  const double* v = b.v.data() + b.first;
  double* part = x.column(begin) + b.first;
  cpu::gemm<double>(false, true, columns, b.count, below, 1, part, x.m, v, x.m, false, vx.data(), b.count);
  cpu::gemm<double>(false, !transposed, columns, b.count, b.count, 1, vx.data(), b.count, b.t.data(), b.count, false, tvx.data(), b.count);
  cpu::gemm<double>(false, false, columns, below, b.count, -1, tvx.data(), b.count, v, x.m, true, part, x.m);
}

/// Q of the QR decomposition of `a`, R's diagonal positive.
Tall orthonormal_columns(Tall a) {
  std::vector<Block> blocks;
  std::vector<double> signs(static_cast<size_t>(a.n));
  for (int64_t first = 0; first < a.n; first += kBlock) {
    blocks.push_back(factor(a, first, signs));
    reflect(blocks.back(), true, a, first + blocks.back().count, a.n);
  }
  Tall q{a.m, a.n, std::vector<double>(a.at.size())};
  for (int64_t j = 0; j < q.n; ++j) q.column(j)[j] = signs[static_cast<size_t>(j)];
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) reflect(*block, false, q, block->first, q.n);
  return q;
}

}  // namespace

std::vector<double> orthogonal_matrix(const Random& random, int64_t rows, int64_t columns) {
  const bool wide = columns > rows;
  Tall a{std::max(rows, columns), std::min(rows, columns), std::vector<double>(static_cast<size_t>(rows * columns))};
  parallel_ranges(rows * columns, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a.at[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(i));
  });
  const Tall q = orthonormal_columns(std::move(a));
  if (wide) return q.at;  // columns of q, one after the other, are the rows
  std::vector<double> matrix(q.at.size());
  for (int64_t i = 0; i < q.m; ++i)
    for (int64_t j = 0; j < q.n; ++j) matrix[static_cast<size_t>(i * q.n + j)] = q.at[static_cast<size_t>(j * q.m + i)];
  return matrix;
}

}  // namespace saccade

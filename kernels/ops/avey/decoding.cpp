#include "kernels/ops/avey/decoding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/avey/decoding_cuda.h"

namespace saccade::avey {
namespace {

constexpr double kNormEps = 1e-8;

double bytes(const Tensor& x) { return static_cast<double>(x.bytes()); }

/// Where the parts of the context of sequence b begin: the chosen splits and its own tokens.
struct Places {
  int64_t split, count, chosen, own, own_count;
  Places(const SplitContext& c, int64_t b)
      : split(c.tokens.last(b) / c.split),
        count(std::min(split, c.top_k)),
        chosen(c.packed ? 0 : c.split * (c.top_k - count)),
        own(chosen + c.split * count),
        own_count(c.tokens.last(b) - split * c.split + 1) {}
};

void check_rows(const char* op, const SplitContext& c) {
  const int64_t before = c.packed ? 0 : c.split * c.top_k;
  expect(c.split > 0 && c.top_k >= 0 && c.tokens.count > 0 && before < c.rows, op, "split ", c.split, ", top_k ", c.top_k, ", rows ",
         c.rows, ", tokens ", c.tokens.count);
}

/// The tokens of one sequence that ask: those after the ones that have asked before.
struct Queries {
  int64_t split, from, count;
  bool anew;
  Queries(const RankerOptions& o, const SplitTokens& tokens, int64_t b)
      : split(tokens.last(b) / o.split), from(tokens.first(b)), count(tokens.count), anew(from % o.split == 0) {
    if (o.query == RankerQuery::split) return;
    from = (split - 1) * o.split;
    count = anew ? o.split : 0;
  }
};

/// Σ over the queries of the greatest cosine with a token of the split that `keys` begins.
template <class T>
T sum_of_maxima(const T* queries, const T* of_queries, int64_t count, const T* keys, const T* of_keys, int64_t S, int64_t D) {
  thread_local std::vector<T> products;
  products.resize(static_cast<size_t>(count * S));
  cpu::gemm_serial<T>(false, true, count, S, D, T(1), queries, D, keys, D, false, products.data(), S);
  T sum = 0;
  for (int64_t a = 0; a < count; ++a) {
    const T* row = products.data() + a * S;
    T best = row[0] * of_keys[0];
    for (int64_t c = 1; c < S; ++c) best = std::max(best, row[c] * of_keys[c]);
    sum += best * of_queries[a];
  }
  return sum;
}

}  // namespace

Tensor inverse_lengths(Tape& tape, const Tensor& x) {
  expect(x.rank() == 3, "avey.inverse_lengths", "x is ", x, "; expected [B, n, D]");
  const Tensor inverse = tape.empty({x.dim(0), x.dim(1)}, accumulation_dtype(x.dtype()));
  tape.run(
      "avey.inverse_lengths", {2.0 * static_cast<double>(x.size()), bytes(x)},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const int64_t D = x.dim(2);
          parallel_for(inverse.size(), [&](int64_t row) {
            const T* from = x.data<T>() + row * D;
            T sum = 0;
            for (int64_t d = 0; d < D; ++d) sum += from[d] * from[d];
            inverse.data<T>()[row] = 1 / (std::sqrt(sum) + static_cast<T>(kNormEps));
          });
        });
      },
      [&] { cuda::inverse_lengths(tape.stream(), x, inverse); });
  return inverse;
}

void add_maxsim(Tape& tape, const Tensor& x, const Tensor& inverse, const RankerOptions& o, const SplitTokens& tokens,
                const Tensor& scores) {
  const int64_t B = x.dim(0), capacity = x.dim(1), D = x.dim(2), N = scores.dim(1), S = o.split;
  const int64_t most = tokens.greatest_last() / S;  // candidates
  expect(inverse.shape() == Shape{B, capacity} && scores.dim(0) == B && most <= N && tokens.greatest_last() < capacity &&
             scores.dtype() == inverse.dtype() && inverse.dtype() == accumulation_dtype(x.dtype()),
         "avey.add_maxsim", "x is ", x, ", inverse ", inverse, ", scores ", scores, ", the last token ", tokens.greatest_last());
  const double read = static_cast<double>(B * most * S * D);
  tape.run(
      "avey.add_maxsim", {2.0 * static_cast<double>(tokens.count) * read, read * static_cast<double>(byte_size(x.dtype()))},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_for(B * most, [&](int64_t task) {
            const int64_t b = task / most, p = task % most;
            const Queries q(o, tokens, b);
            if (p >= q.split || q.count == 0) return;
            const T *sequence = x.data<T>() + b * capacity * D, *lengths = inverse.data<T>() + b * capacity;
            T& score = scores.data<T>()[b * N + p];
            const T sum = sum_of_maxima(sequence + q.from * D, lengths + q.from, q.count, sequence + p * S * D, lengths + p * S, S, D);
            score = q.anew ? sum : score + sum;
          });
        });
      },
      [&] { cuda::add_maxsim(tape.stream(), x, inverse, o, tokens, scores); });
}

Tensor split_context(Tape& tape, const Tensor& x, const Ranked& ranked, const SplitContext& c) {
  const int64_t B = x.dim(0), capacity = x.dim(1), D = x.dim(2);
  check_rows("avey.split_context", c);
  expect(c.tokens.greatest_last() < capacity && (c.top_k == 0 || ranked.chosen.shape() == Shape{B, c.top_k}), "avey.split_context", "x is ",
         x, ", chosen are ", ranked.chosen, ", the last token ", c.tokens.greatest_last());
  const Tensor rows = tape.empty({B, c.rows, D}, x.dtype());
  tape.run(
      "avey.split_context", {static_cast<double>(rows.size()), 2 * bytes(rows)},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t b = 0; b < B; ++b) {
            const Places at(c, b);
            const T* sequence = x.data<T>() + b * capacity * D;
            T* to = rows.data<T>() + b * c.rows * D;
            expect(at.own + at.own_count <= c.rows, "avey.split_context", "rows ", c.rows, ", of which are taken ", at.own + at.own_count);
            std::fill_n(to, at.chosen * D, T(0));
            for (int64_t slot = 0; slot < at.count; ++slot) {
              const T weight = ranked.weights.data<T>()[b * c.top_k + slot];
              const T* chosen = sequence + ranked.chosen.data<int32_t>()[b * c.top_k + slot] * c.split * D;
              std::transform(chosen, chosen + c.split * D, to + (at.chosen + slot * c.split) * D, [&](T value) { return weight * value; });
            }
            std::copy_n(sequence + at.split * c.split * D, at.own_count * D, to + at.own * D);
            std::fill(to + (at.own + at.own_count) * D, to + c.rows * D, T(0));
          }
        });
      },
      [&] { cuda::split_context(tape.stream(), x, ranked, c, rows); });
  return rows;
}

void clear_padding(Tape& tape, const Tensor& Z, const SplitContext& c) {
  check_rows("avey.clear_padding", c);
  expect(Z.rank() == 2 && Z.dim(0) % c.rows == 0 && !c.packed, "avey.clear_padding", "Z is ", Z, ", rows of a context ", c.rows);
  const int64_t B = Z.dim(0) / c.rows;
  tape.run(
      "avey.clear_padding", {0, bytes(Z)},
      [&] {
        dispatch(Z.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t b = 0; b < B; ++b) std::fill_n(Z.data<T>() + b * c.rows * Z.dim(1), Places(c, b).chosen * Z.dim(1), T(0));
        });
      },
      [&] { cuda::clear_padding(tape.stream(), Z, c); });
}

Tensor rows_of_last(Tape& tape, const Tensor& rows, const SplitContext& c, int64_t n) {
  check_rows("avey.rows_of_last", c);
  expect(rows.rank() == 3 && rows.dim(1) == c.rows && n >= 1 && n <= c.tokens.count, "avey.rows_of_last", "rows are ", rows, ", n ", n);
  const int64_t B = rows.dim(0), D = rows.dim(2);
  const Tensor last = tape.empty({B, n, D}, rows.dtype());
  tape.run(
      "avey.rows_of_last", {0, 2 * bytes(last)},
      [&] {
        dispatch(rows.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t b = 0; b < B; ++b) {
            const Places at(c, b);
            std::copy_n(rows.data<T>() + (b * c.rows + at.own + at.own_count - n) * D, n * D, last.data<T>() + b * n * D);
          }
        });
      },
      [&] { cuda::rows_of_last(tape.stream(), rows, c, last); });
  return last;
}

}  // namespace saccade::avey

#include "kernels/ops/avey/ranker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/avey/decoding.h"
#include "kernels/ops/avey/decoding_cuda.h"
#include "kernels/ops/avey/ranker_cuda.h"

namespace saccade::avey {
namespace {

constexpr double kNormEps = 1e-8, kWeightEps = 1e-8;
constexpr int64_t kRowGrain = 64, kKeyColumns = 512;

struct Sizes {
  int64_t B, T, D, N, S, k;
  bool causal;
  int64_t count(int64_t i) const { return std::min(S, T - i * S); }  ///< tokens of split i
  int64_t query(int64_t i) const { return causal ? i - 1 : i; }      ///< the split that asks on behalf of split i
  int64_t candidates(int64_t i) const { return std::min(i, k); }
};

Sizes sizes(const Tensor& x, const RankerOptions& o) {
  const int64_t T = x.dim(1);
  return {x.dim(0), T, x.dim(2), (T + o.split - 1) / o.split, o.split, o.top_k, o.query == RankerQuery::causal};
}

template <class T>
SACCADE_INLINE T max_of_impl(const T* x, int64_t n) {
  T best = x[0];
  for (int64_t i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
SACCADE_SIMD float max_of(const float* x, int64_t n) { return max_of_impl(x, n); }
SACCADE_SIMD double max_of(const double* x, int64_t n) { return max_of_impl(x, n); }

template <class T>
SACCADE_INLINE void add_scaled_impl(T* y, const T* x, T a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}
SACCADE_SIMD void add_scaled(float* y, const float* x, float a, int64_t n) { add_scaled_impl(y, x, a, n); }
SACCADE_SIMD void add_scaled(double* y, const double* x, double a, int64_t n) { add_scaled_impl(y, x, a, n); }

/// u = x / (|x| + eps), norm = |x|.
template <class T>
void normalize(const Sizes& z, const T* x, T* u, T* norm) {
  parallel_ranges(z.B * z.T, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * z.D;
      T sum = 0;
      for (int64_t d = 0; d < z.D; ++d) sum += from[d] * from[d];
      norm[row] = std::sqrt(sum);
      const T scale = 1 / (norm[row] + static_cast<T>(kNormEps));
      for (int64_t d = 0; d < z.D; ++d) u[row * z.D + d] = from[d] * scale;
    }
  });
}

/// maxsim(i, p) for all p < i of one sequence: a product whose epilogue keeps row maxima and their sum only.
template <class T>
void score_split(const Sizes& z, const T* u, int64_t i, T* scores) {
  thread_local std::vector<T> cosines;
  const int64_t together = std::max<int64_t>(1, kKeyColumns / z.S);  // key splits a product
  const int64_t q = z.query(i), rows = z.count(q);
  std::fill(scores, scores + z.N, -std::numeric_limits<T>::infinity());
  for (int64_t p0 = 0; p0 < i; p0 += together) {
    const int64_t splits = std::min(together, i - p0), columns = splits * z.S;
    cosines.resize(static_cast<size_t>(rows * columns));
    cpu::gemm_serial<T>(false, true, rows, columns, z.D, 1, u + q * z.S * z.D, z.D, u + p0 * z.S * z.D, z.D, false, cosines.data(),
                        columns);
    for (int64_t p = 0; p < splits; ++p) {
      T sum = 0;
      for (int64_t a = 0; a < rows; ++a) sum += max_of(cosines.data() + a * columns + p * z.S, z.S);
      scores[p0 + p] = sum;
    }
  }
}

/// The best candidates in sequence order. Written so that NaN scores choose something too.
template <class T>
void choose(const Sizes& z, const T* scores, int64_t i, int32_t* chosen) {
  const int64_t count = z.candidates(i);
  for (int64_t slot = 0; slot < count; ++slot) {
    int32_t best = -1;
    for (int32_t p = 0; p < i; ++p) {
      if (std::find(chosen, chosen + slot, p) != chosen + slot) continue;
      if (best < 0 || scores[p] > scores[best]) best = p;
    }
    chosen[slot] = best;
  }
  std::sort(chosen, chosen + count);
  std::fill(chosen + count, chosen + z.k, -1);
}

/// The forced split in place of the chosen one with the least score, in sequence order again.
template <class T>
void force(const Sizes& z, const T* scores, int64_t i, int64_t forced, int32_t* chosen) {
  int32_t* end = chosen + z.candidates(i);
  if (std::find(chosen, end, forced) != end) return;
  *std::min_element(chosen, end, [&](int32_t a, int32_t b) { return scores[a] < scores[b]; }) = static_cast<int32_t>(forced);
  std::sort(chosen, end);
}

/// Slot of the score that the others are divided by.
template <class T>
int64_t reference_slot(const T* scores, const int32_t* chosen, int64_t count, WeightReference reference) {
  int64_t slot = 0;
  if (reference == WeightReference::max)
    for (int64_t s = 1; s < count; ++s)
      if (scores[chosen[s]] > scores[chosen[slot]]) slot = s;
  return slot;
}

template <class T>
void weigh(const Sizes& z, const RankerOptions& o, const T* scores, const int32_t* chosen, int64_t i, T* weights) {
  const int64_t count = z.candidates(i);
  std::fill(weights, weights + z.k, T(0));
  if (count == 0) return;
  const T reference = scores[chosen[reference_slot(scores, chosen, count, o.reference)]] + static_cast<T>(kWeightEps);
  for (int64_t s = 0; s < count; ++s) weights[s] = o.weighting ? scores[chosen[s]] / reference : T(1);
}

template <class T>
void forward(const Sizes& z, const RankerOptions& o, const T* x, T* u, T* norm, T* maxsim, int32_t* chosen, T* weights) {
  normalize(z, x, u, norm);
  parallel_for(z.B * z.N, [&](int64_t task) {
    const int64_t b = task % z.B, i = z.N - 1 - task / z.B;  // the longest first
    const int64_t split = b * z.N + i;
    score_split(z, u + b * z.T * z.D, i, maxsim + split * z.N);
    choose(z, maxsim + split * z.N, i, chosen + split * z.k);
    if (b == 0 && o.forced && o.forced.query == i) force(z, maxsim + split * z.N, i, o.forced.choice, chosen + split * z.k);
    weigh(z, o, maxsim + split * z.N, chosen + split * z.k, i, weights + split * z.k);
  });
}

/// From d_weights to d_scores of the chosen.
template <class T>
void score_gradient(const Sizes& z, const RankerOptions& o, const T* scores, const int32_t* chosen, int64_t i, const T* d_weights,
                    T* d_scores) {
  const int64_t count = z.candidates(i);
  if (count == 0) return;
  const int64_t r = reference_slot(scores, chosen, count, o.reference);
  const T reference = scores[chosen[r]] + static_cast<T>(kWeightEps);
  T d_reference = 0;
  for (int64_t s = 0; s < count; ++s) {
    d_scores[s] = d_weights[s] / reference;
    d_reference -= d_weights[s] * scores[chosen[s]] / (reference * reference);
  }
  d_scores[r] += d_reference;
}

/// winners[slot][a]: the token of the chosen split that won the max of query token a.
template <class T>
void find_winners(const Sizes& z, const T* u, const int32_t* chosen, int64_t i, int32_t* winners) {
  thread_local std::vector<T> cosines;
  cosines.resize(static_cast<size_t>(z.S * z.S));
  const int64_t q = z.query(i), rows = z.count(q);
  for (int64_t s = 0; s < z.candidates(i); ++s) {
    cpu::gemm_serial<T>(false, true, rows, z.S, z.D, 1, u + q * z.S * z.D, z.D, u + chosen[s] * z.S * z.D, z.D, false, cosines.data(), z.S);
    for (int64_t a = 0; a < rows; ++a) {
      const T* row = cosines.data() + a * z.S;
      winners[s * z.S + a] = static_cast<int32_t>(std::max_element(row, row + z.S) - row);
    }
  }
}

/// Everything that the backward of one sequence reads.
template <class T>
struct Choice {
  const T* u;
  const int32_t* chosen;
  const T* d_scores;
  const int32_t* winners;
};

/// d_u of split s: as the query of one split, and as a candidate that later splits chose, in ascending order.
template <class T>
void unit_gradient(const Sizes& z, const Choice<T>& c, int64_t s, T* d_u) {
  std::fill(d_u, d_u + z.S * z.D, T(0));
  for (int64_t i = s; i < std::min(z.N, s + 2); ++i) {
    if (i == 0 || z.query(i) != s) continue;
    for (int64_t slot = 0; slot < z.candidates(i); ++slot) {
      const T* key = c.u + c.chosen[i * z.k + slot] * z.S * z.D;
      const int32_t* winner = c.winners + (i * z.k + slot) * z.S;
      for (int64_t a = 0; a < z.count(s); ++a) add_scaled(d_u + a * z.D, key + winner[a] * z.D, c.d_scores[i * z.k + slot], z.D);
    }
  }
  for (int64_t i = s + 1; i < z.N; ++i)
    for (int64_t slot = 0; slot < z.candidates(i); ++slot) {
      if (c.chosen[i * z.k + slot] != s) continue;
      const T* query = c.u + z.query(i) * z.S * z.D;
      const int32_t* winner = c.winners + (i * z.k + slot) * z.S;
      for (int64_t a = 0; a < z.count(z.query(i)); ++a) add_scaled(d_u + winner[a] * z.D, query + a * z.D, c.d_scores[i * z.k + slot], z.D);
    }
}

/// u = x / (n + eps):  d_x = (d_u − u (x · d_u) / n) / (n + eps)
template <class T>
void norm_gradient(int64_t D, const T* u, T norm, const T* d_u, T* d_x, bool add) {
  T dot = 0;
  for (int64_t d = 0; d < D; ++d) dot += u[d] * d_u[d];
  const T scale = 1 / (norm + static_cast<T>(kNormEps));
  const T along = norm > 0 ? dot / (norm * scale) : T(0);  // x = u / scale
  for (int64_t d = 0; d < D; ++d) d_x[d] = (add ? d_x[d] : T(0)) + scale * (d_u[d] - u[d] * along);
}

template <class T>
void backward(const Sizes& z, const RankerOptions& o, const T* u, const T* norm, const T* maxsim, const int32_t* chosen, const T* d_weights,
              T* d_scores, int32_t* winners, T* d_x, bool add) {
  parallel_for(z.B * z.N, [&](int64_t split) {
    const int64_t b = split / z.N, i = split % z.N;
    score_gradient(z, o, maxsim + split * z.N, chosen + split * z.k, i, d_weights + split * z.k, d_scores + split * z.k);
    if (i > 0) find_winners(z, u + b * z.T * z.D, chosen + split * z.k, i, winners + split * z.k * z.S);
  });
  parallel_for(z.B * z.N, [&](int64_t split) {
    thread_local std::vector<T> d_u;
    d_u.resize(static_cast<size_t>(z.S * z.D));
    const int64_t b = split / z.N, s = split % z.N, first = b * z.N * z.k;
    unit_gradient(z, Choice<T>{u + b * z.T * z.D, chosen + first, d_scores + first, winners + first * z.S}, s, d_u.data());
    for (int64_t a = 0; a < z.count(s); ++a) {
      const int64_t row = b * z.T + s * z.S + a;
      norm_gradient(z.D, u + row * z.D, norm[row], d_u.data() + a * z.D, d_x + row * z.D, add);
    }
  });
}

/// Multiply-adds count twice: every pair of tokens of split i (or i−1) and an earlier split.
double score_flops(const Sizes& z, int64_t most_candidates) {
  double flops = 0;
  for (int64_t i = 1; i < z.N; ++i)
    flops += 2.0 * static_cast<double>(z.count(z.query(i))) * static_cast<double>(std::min(i, most_candidates) * z.S * z.D);
  return static_cast<double>(z.B) * flops;
}

}  // namespace

WeightReference parse_weight_reference(const std::string& name) {
  if (name == "max") return WeightReference::max;
  if (name == "first") return WeightReference::first;
  throw UsageError("weight_reference is \"" + name + "\", expected max or first");
}

RankerQuery parse_ranker_query(const std::string& name) {
  if (name == "split") return RankerQuery::split;
  if (name == "causal") return RankerQuery::causal;
  throw UsageError("ranker_query is \"" + name + "\", expected split or causal");
}

Ranked rank(Tape& tape, const Tensor& x, const RankerOptions& o) {
  expect(x.rank() == 3 && o.split > 0 && o.top_k > 0, "avey.rank", "x is ", x, ", split ", o.split, ", top_k ", o.top_k,
         "; expected x [B, T, D] and positive numbers");
  const Sizes z = sizes(x, o);
  const cuda::RankShape shape{z.B, z.T, z.D, z.N, z.S, z.k, z.causal, o.weighting, o.reference == WeightReference::first};
  const bool on_cuda = tape.device().targets_cuda();
  if (o.forced && (o.forced.query >= z.N || o.forced.choice < 0 || o.forced.choice >= o.forced.query))
    throw UsageError("[avey.rank] split " + std::to_string(o.forced.query) + " cannot take split " + std::to_string(o.forced.choice) +
                     "; expected an earlier one");
  if (o.forced && on_cuda) throw DeviceError("[avey.rank] forces a choice on the CPU only");
  const DType exact = accumulation_dtype(x.dtype());
  const Tensor u = on_cuda ? Tensor() : tape.empty(x.shape(), x.dtype()), norm = tape.empty({z.B, z.T}, exact);
  Ranked out{tape.empty({z.B, z.N, z.k}, DType::i32), tape.empty({z.B, z.N, z.k}, exact), tape.empty({z.B, z.N, z.N}, exact)};
  const bool differentiated = o.weighting && tape.recording() && x.differentiable();
  const Tensor winners_of_cuda = on_cuda && differentiated ? tape.empty({z.B, z.N, z.k, z.S}, DType::i32) : Tensor();
  const double touched = static_cast<double>(2 * x.bytes() + out.maxsim.bytes());
  {
    const Tensor products = on_cuda ? tape.empty({shape.product_elements()}, DType::f32) : Tensor();
    tape.run(
        "avey.rank", {score_flops(z, z.N) + 3.0 * static_cast<double>(x.size()), touched},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            forward<T>(z, o, x.data<T>(), u.data<T>(), norm.data<T>(), out.maxsim.data<T>(), out.chosen.data<int32_t>(),
                       out.weights.data<T>());
          });
        },
        [&] { cuda::rank(tape.device().index, shape, x, norm, products, out, winners_of_cuda); });
  }
  if (!o.weighting) return out;
  tape.record({x}, {&out.weights}, [=](Tape& t) {
    const GradTarget dx = t.grad_target(x);
    if (!dx) return;
    const Tensor d_weights = t.grad(out.weights), d_scores = t.empty(out.weights.shape(), exact);
    const Tensor winners = on_cuda ? winners_of_cuda : t.empty({z.B, z.N, z.k, z.S}, DType::i32);
    t.run(
        "avey.rank.backward", {score_flops(z, z.k) + 8.0 * static_cast<double>(x.size()), touched + static_cast<double>(x.bytes())},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            backward<T>(z, o, u.data<T>(), norm.data<T>(), out.maxsim.data<T>(), out.chosen.data<int32_t>(), d_weights.data<T>(),
                        d_scores.data<T>(), winners.data<int32_t>(), dx.tensor.data<T>(), dx.add);
          });
        },
        [&] { cuda::rank_backward(t.stream(), shape, x, norm, out, winners, d_weights, d_scores, dx.tensor, dx.add); });
  });
  return out;
}

Ranked rank_split(Tape& tape, const Tensor& scores, const RankerOptions& o, const SplitTokens& tokens) {
  expect(scores.rank() == 2 && o.split > 0 && o.top_k > 0 && tokens.greatest_last() / o.split <= scores.dim(1), "avey.rank_split",
         "scores are ", scores, ", split ", o.split, ", the last token ", tokens.greatest_last());
  const int64_t B = scores.dim(0), N = scores.dim(1);
  const Sizes z{B, 0, 0, N, o.split, o.top_k, o.query == RankerQuery::causal};
  const Ranked out{tape.empty({B, o.top_k}, DType::i32), tape.empty({B, o.top_k}, scores.dtype()), {}};
  tape.run(
      "avey.rank_split", {0, static_cast<double>(scores.bytes())},
      [&] {
        dispatch(scores.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t b = 0; b < B; ++b) {
            const T* of_b = scores.data<T>() + b * N;
            int32_t* chosen = out.chosen.data<int32_t>() + b * o.top_k;
            const int64_t i = tokens.last(b) / o.split;
            choose(z, of_b, i, chosen);
            weigh(z, o, of_b, chosen, i, out.weights.data<T>() + b * o.top_k);
          }
        });
      },
      [&] { cuda::rank_split(tape.stream(), scores, o, tokens, out); });
  return out;
}

}  // namespace saccade::avey

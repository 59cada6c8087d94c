#include "kernels/ops/head_projection/head_projection.h"

#include "kernels/engine/expect.h"
#include "kernels/engine/side_stream.h"
#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/attention/score_backward.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/head_projection/fused_linear_cuda.h"
#include "kernels/ops/head_projection/packed_heads_cuda.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/linear/linear_stack_cuda.h"

namespace saccade {
namespace {

Cost product_cost(const Tensor& x, int64_t out) {
  const int64_t in = x.dim(-1), rows = x.size() / in;
  return {2.0 * static_cast<double>(rows * in) * static_cast<double>(out),
          static_cast<double>((rows * (in + out) + in * out) * byte_size(x.dtype()))};
}

Cost heads_cost(const Tensor& q, double flops, int tensors) {
  return {2 * flops * static_cast<double>(q.size()), static_cast<double>(2 * tensors * q.bytes())};
}

/// Op by op: what the fused form computes.
ProjectedHeads unfused(Tape& tape, const Tensor& x, const HeadProjection& p) {
  std::vector<Tensor> weights{p.key, p.value};
  if (p.query) weights.insert(weights.begin(), p.query);
  std::vector<Tensor> y = linears(tape, x, weights);
  for (Tensor& side : y) side = side.reshape({x.dim(0), x.dim(1), p.heads, side.dim(-1) / p.heads});
  ProjectedHeads out{p.query ? prepare_heads(tape, y[0], p.query_norm_weight, p.options) : Tensor(),
                     prepare_heads(tape, y[y.size() - 2], p.key_norm_weight, p.options), y.back()};
  for (const auto& [made, rows] : {std::pair(&out.k, p.key_rows), std::pair(&out.v, p.value_rows)})
    if (rows) {
      append_rows(tape, *made, rows, {});
      *made = rows;
    }
  return out;
}

bool fuses(const Tape& tape, const Tensor& x, const HeadProjection& p) {
  return tape.device().targets_cuda() && p.query && (tape.recording() || x.dim(1) > 1) && p.options.position.first == 0 &&
         (p.options.norm != QkNorm::none || p.options.rotary_base != 0) && p.query.shape() == p.key.shape() &&
         packs_heads(x.dtype(), p.query.dim(0) / p.heads);
}

Tensor rows_or_new(Tape& tape, const Tensor& x, const HeadProjection& p, const Tensor& weight, const Tensor& rows) {
  return rows ? rows : tape.empty({x.dim(0), x.dim(1), p.heads, weight.dim(0) / p.heads}, x.dtype());
}

/// Product, norm and rotation in one pass on a GPU that can; whether it did.
bool at_once(const Tape& tape, const Tensor& x, const HeadProjection& p, const ProjectedHeads& y) {
  return cuda::heads_product(tape.device().index, x, p, p.query ? tape.compute_copy(p.query) : Tensor(), tape.compute_copy(p.key),
                             tape.compute_copy(p.value), y);
}

/// Keys and values only.
ProjectedHeads without_queries(Tape& tape, const Tensor& x, const HeadProjection& p) {
  bool done = false;
  if (tape.device().is_cuda() && p.options.position.first == 0) {
    const ProjectedHeads y{{}, rows_or_new(tape, x, p, p.key, p.key_rows), rows_or_new(tape, x, p, p.value, p.value_rows)};
    tape.run(
        "project_heads", product_cost(x, p.key.dim(0) + p.value.dim(0)), [] {}, [&] { done = at_once(tape, x, p, y); });
    if (done) return y;
  }
  return unfused(tape, x, p);
}

/// Backward of both heads into `d_packed` [rows, 2 H d]. `packed` as it came from the product, empty without a norm.
void backward_heads(Tape& t, const HeadProjection& p, const ProjectedHeads& y, const Tensor& packed, const Tensor& d_packed) {
  const Tensor dq = t.grad_or_zeros(y.q), dk = t.grad_or_zeros(y.k);
  const GradTarget dq_norm_weight = t.grad_target(p.query_norm_weight), dk_norm_weight = t.grad_target(p.key_norm_weight);
  const bool norm_weights = dq_norm_weight || dk_norm_weight;
  const Tensor partial = norm_weights ? t.empty({2, packed_head_partials(y.q.shape()), y.q.dim(-1)}, DType::f32) : Tensor();
  t.run(
      "project_heads.backward.heads", heads_cost(y.q, 16, packed ? 3 : 2), [] {},
      [&] {
        cuda::unpack_heads_backward(t.stream(), packed, p.query_norm_weight, p.key_norm_weight, p.options, dq, dk, d_packed,
                                    {dq_norm_weight, dk_norm_weight}, partial);
      });
}

/// Gradients of products with some matrices, side by side in rows.
struct Side {
  Tensor d_packed;  ///< [rows, Σ n_i]
  std::vector<Tensor> weights;
};

void backward_products(Tape& t, const Tensor& x, const std::vector<Side>& sides) {
  const int device = t.device().index;
  std::vector<Tensor> reads{x};
  std::vector<GradTarget> d_weights;
  int64_t out = 0;
  for (const Side& side : sides) {
    reads.push_back(side.d_packed);
    for (const Tensor& w : side.weights) d_weights.push_back(t.grad_target(w));
    out += side.d_packed.dim(1);
  }
  run_on_side_stream(
      t, "project_heads.backward.weights", product_cost(x, out), reads, d_weights, [] {},
      [&] {
        auto target = d_weights.begin();
        for (const Side& side : sides) {
          const auto end = target + static_cast<std::ptrdiff_t>(side.weights.size());
          cuda::stack_backward_weights(device, x, side.d_packed, {target, end}, side.weights);
          target = end;
        }
      });
  GradTarget dx = t.grad_target(x);
  if (!dx) return;
  t.run(
      "project_heads.backward.input", product_cost(x, out), [] {},
      [&] {
        for (const Side& side : sides) {
          std::vector<Tensor> copies;
          for (const Tensor& w : side.weights) copies.push_back(t.compute_copy(w));
          cuda::stack_backward_input(device, side.d_packed, copies, dx);
          dx.add = true;
        }
      });
}

void backward(Tape& t, const Tensor& x, const HeadProjection& p, const ProjectedHeads& y, const Tensor& packed) {
  const int64_t rows = x.size() / x.dim(-1), width = p.query.dim(0);
  const Tensor dv = t.grad_or_zeros(y.v), d_packed = t.empty({rows, 2 * width}, x.dtype());
  backward_heads(t, p, y, packed, d_packed);
  backward_products(t, x, {{d_packed, {p.query, p.key}}, {dv.reshape({rows, p.value.dim(0)}), {p.value}}});
}

/// The fused form, not recorded. `packed`: queries and keys as they came from the product.
ProjectedHeads make_heads(Tape& tape, const Tensor& x, const HeadProjection& p, Tensor& packed) {
  const int64_t width = p.query.dim(0), rows = x.dim(0) * x.dim(1);
  const Shape heads{x.dim(0), x.dim(1), p.heads, width / p.heads};
  packed = tape.empty({rows, 2 * width}, x.dtype());
  ProjectedHeads y{tape.empty(heads, x.dtype()), rows_or_new(tape, x, p, p.key, p.key_rows),
                   rows_or_new(tape, x, p, p.value, p.value_rows)};
  bool prepared = false;  // by the products' own pass
  tape.run(
      "project_heads", product_cost(x, 2 * width + p.value.dim(0)), [] {},
      [&] {
        prepared = !tape.recording() && at_once(tape, x, p, y);
        if (prepared) return;
        cuda::stack_forward(tape.device().index, x, {tape.compute_copy(p.query), tape.compute_copy(p.key)}, packed);
        cuda::stack_forward(tape.device().index, x, {tape.compute_copy(p.value)}, y.v.reshape({rows, p.value.dim(0)}));
      });
  tape.run(
      "project_heads.heads", heads_cost(y.q, 8, 2), [] {},
      [&] {
        if (!prepared) cuda::unpack_heads(tape.stream(), packed, p.query_norm_weight, p.key_norm_weight, p.options, y.q, y.k);
      });
  return y;
}

void check(const Tape& tape, const Tensor& x, const HeadProjection& p) {
  for (const Tensor& w : {p.query ? p.query : p.key, p.key, p.value})
    expect(x.rank() == 3 && w.rank() == 2 && w.dim(1) == x.dim(2) && w.dim(0) % p.heads == 0 && accumulation_dtype(x.dtype()) == w.dtype(),
           "project_heads", "x is ", x, " ", x.dtype(), ", a weight is ", w, " ", w.dtype(),
           "; expected x [B, T, D], weights [H d, D], H = ", p.heads);
  for (const Tensor& rows : {p.key_rows, p.value_rows})
    expect(!rows || (!tape.recording() && rows.shape() == Shape{x.dim(0), x.dim(1), p.heads, p.key.dim(0) / p.heads} &&
                     rows.dtype() == x.dtype()),
           "project_heads", "x is ", x, ", k and v go to ", rows, "; expected [B, T, H, d], and no gradient");
}

}  // namespace

ProjectedHeads project_heads(Tape& tape, const Tensor& x, const HeadProjection& p) {
  check(tape, x, p);
  if (!p.query && !tape.recording()) return without_queries(tape, x, p);
  if (!fuses(tape, x, p)) return unfused(tape, x, p);
  Tensor packed;
  ProjectedHeads y = make_heads(tape, x, p, packed);
  if (p.options.norm == QkNorm::none) packed = {};
  tape.record({x, p.query, p.key, p.value, p.query_norm_weight, p.key_norm_weight}, {&y.q, &y.k, &y.v},
              [=](Tape& t) { backward(t, x, p, y, packed); });
  return y;
}

/// Turning heads back costs attention's backward some of its registers, and so 4 % of its time; in longer sequences that is more than the
/// passes left out.
constexpr int64_t kLongestRotated = 4096;

AttendedHeads attend_heads(Tape& tape, const Tensor& x, const HeadProjection& p, const ScoreOptions& score, bool want_entropy) {
  check(tape, x, p);
  const HeadShape shape{x.dim(0), x.dim(1), p.heads, p.value.dim(0) / p.heads};
  if (!tape.recording() || !fuses(tape, x, p) || p.options.norm != QkNorm::none || p.value.shape() != p.query.shape() ||
      shape.length > kLongestRotated || !cuda::sums_queries(shape, score, x.dtype())) {
    const ProjectedHeads y = project_heads(tape, x, p);
    return {y, attention(tape, y.q, y.k, y.v, score, want_entropy)};
  }
  Tensor packed;
  const ProjectedHeads y = make_heads(tape, x, p, packed);
  packed = {};
  AttendedHeads out{y, attention(tape, y.q, y.k, y.v, score, want_entropy)};
  tape.record({x, p.query, p.key, p.value}, {&out.attention.o}, [=, a = out.attention](Tape& t) {
    const Tensor d_packed = t.empty({shape.batch * shape.length, 3, shape.stride()}, x.dtype());
    score_backward(t, {"attention.backward", shape, score, y.q, y.k, y.v, a.lse, a.o, true, {}, d_packed, p.options.rotary_base},
                   t.grad(a.o));
    backward_products(t, x, {{d_packed.reshape({shape.batch * shape.length, 3 * shape.stride()}), {p.query, p.key, p.value}}});
  });
  return out;
}

}  // namespace saccade

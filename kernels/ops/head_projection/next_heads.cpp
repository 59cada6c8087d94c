#include "kernels/ops/head_projection/next_heads.h"

#include "kernels/engine/expect.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/head_projection/fused_linear_cuda.h"
#include "kernels/ops/head_projection/next_heads_cuda.h"
#include "kernels/ops/head_projection/packed_heads_cuda.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/linear_stack_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade {
namespace {

bool fuses(const Tape& tape, const Tensor& x, const HeadProjection& p) {
  return tape.device().targets_cuda() && p.query && p.query.shape() == p.key.shape() && p.value.shape() == p.key.shape() &&
         packs_heads(x.dtype(), p.key.dim(0) / p.heads);
}

void check(const Tensor& x, const HeadProjection& p, const Tensor& keys, const Tensor& values) {
  for (const Tensor& cache : {keys, values})
    expect(x.rank() == 3 && x.dim(1) == 1 && cache.rank() == 4 && cache.dim(0) == x.dim(0) && cache.dtype() == x.dtype() &&
               cache.dim(2) == p.heads && p.heads * cache.dim(3) == p.key.dim(0) && p.options.position.first < cache.dim(1),
           "project_next_heads", "x is ", x, " ", x.dtype(), ", a cache ", cache, " ", cache.dtype(), ", first position ",
           p.options.position.first, "; expected x [B, 1, D], caches [B, capacity, H, d] with first < capacity, H = ", p.heads);
}

}  // namespace

Tensor project_next_heads(Tape& tape, const Tensor& x, const HeadProjection& p, const Tensor& keys, const Tensor& values,
                          const InputNorm& norm) {
  check(x, p, keys, values);
  norm.check("project_next_heads", x);
  if (!fuses(tape, x, p)) {
    const auto [q, k, v] = project_heads(tape, norm(tape, x), p);
    append_rows(tape, k, keys, p.options.position);
    append_rows(tape, v, values, p.options.position);
    return q;
  }
  const int64_t rows = x.dim(0), width = p.key.dim(0);
  const Tensor u = norm ? tape.empty(x.shape(), x.dtype()) : x;
  const Tensor packed = tape.empty({rows, 3 * width}, x.dtype()), q = tape.empty({rows, 1, p.heads, width / p.heads}, x.dtype());
  const double products = static_cast<double>(3 * width) * static_cast<double>(x.dim(2));
  const auto bytes = [](double elements, const Tensor& of) { return elements * static_cast<double>(byte_size(of.dtype())); };
  bool done = false;  // by the products' own pass
  tape.run(
      "project_next_heads",
      {2 * static_cast<double>(rows) * products, bytes(products, x) + static_cast<double>(x.bytes() + packed.bytes())}, [] {},
      [&] {
        const int device = tape.device().index;
        const Tensor query = tape.compute_copy(p.query), key = tape.compute_copy(p.key), value = tape.compute_copy(p.value);
        done = few_rows(tape, x) && cuda::few_rows_heads(device, x, norm, p, query, key, value, q, keys, values);
        if (done) return;
        if (norm) cuda::norm(tape.stream(), x, norm.weight, {}, u, norm.epsilon);
        cuda::stack_forward(device, u, {query, key, value}, packed);
      });
  tape.run(
      "project_next_heads.heads", {12 * static_cast<double>(q.size()), 2 * static_cast<double>(packed.bytes())}, [] {},
      [&] {
        if (!done) cuda::next_heads(tape.stream(), packed, p, q, keys, values);
      });
  return q;
}

}  // namespace saccade

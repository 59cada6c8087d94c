#include "kernels/ops/avey/contextualizer.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/plain.h"
#include "kernels/ops/avey/context_weights.h"
#include "kernels/ops/avey/contextualizer_cuda.h"
#include "kernels/ops/avey/processor_stages.h"

namespace saccade::avey {
namespace {

constexpr int64_t kBlock = 64;   ///< queries together
constexpr int64_t kGroups = 16;  ///< partial sums of d_A, fewer where A is large
constexpr int64_t kGroupElements = int64_t{1} << 24;

/// All contexts, the shared padding first when it is asked for. Of those without own_only all rows but shared padding ask.
struct Contexts {
  const ContextLayout& layout;
  bool own_only;

  bool padding_asks() const { return !own_only && layout.pad_rows() > 0; }
  int64_t count() const { return layout.batch * layout.splits() + (padding_asks() ? 1 : 0); }
  bool is_padding(int64_t index) const { return padding_asks() && index == 0; }
  ContextRows rows(int64_t index) const {
    if (is_padding(index)) return padding_context(layout);
    const int64_t context = index - (padding_asks() ? 1 : 0);
    return context_rows(layout, context / layout.splits(), context % layout.splits());
  }
  /// First run of rows that ask: padding, chosen or own.
  size_t first_run(int64_t index) const { return is_padding(index) ? 0 : own_only ? 2 : 1; }
  /// Where the result of a row stands.
  int64_t result(int64_t row) const { return own_only ? row - layout.first_own_row() : row; }
};

struct Sizes {
  int64_t r, C;
  bool dynamic;
};

template <class T>
void forward(const Contexts& contexts, const Sizes& s, const T* z, const T* A, T* y) {
  parallel_for(contexts.count(), [&](int64_t index) {
    thread_local PackedContext<T> packed;
    thread_local std::vector<T> weights;
    const ContextRows rows = contexts.rows(index);
    packed.load(z, s.r, rows);
    weights.resize(static_cast<size_t>(kBlock * packed.n));
    const T* a = A + rows.first_position * (s.C + 1);
    each_query_block(rows, contexts.first_run(index), kBlock, [&](int64_t first, int64_t row, int64_t count) {
      if (s.dynamic) gram_block(packed, first, count, weights.data());
      weigh_block(weights.data(), packed.inverse.data(), a, s.C, first, count, s.dynamic);
      cpu::gemm_serial<T>(false, false, count, s.r, first + count, 1, weights.data(), first + count, packed.z.data(), s.r, false,
                          y + contexts.result(row) * s.r, s.r);
    });
  });
}

/// One row block of the backward. In: gram, d_w = d_y zᵀ. Out: gram becomes W = A * cos; d_w becomes M = d_cos / (|z_t| |z_j|);
/// d_a gathers d_w * cos; along[t], along[j] gather d_cos * cos.
template <class T>
SACCADE_INLINE void weigh_backward_impl(T* gram, T* d_w, const T* __restrict inverse, const T* a, T* d_a, T* __restrict along, int64_t C,
                                        int64_t first, int64_t count, bool dynamic) {
  const int64_t columns = first + count;
  for (int64_t t = first; t < columns; ++t) {
    T* __restrict w = gram + (t - first) * columns, * __restrict d = d_w + (t - first) * columns, * __restrict da = d_a + t * C;
    const T* __restrict row = a + t * C;
    if (dynamic) {
      const T scale = inverse[t];
      const T sum = lane_sum<T>(t + 1, [&](int64_t j) SACCADE_INLINE_LAMBDA { return d[j] * row[j] * w[j] * (scale * inverse[j]); });
      for (int64_t j = 0; j <= t; ++j) {
        const T both = scale * inverse[j], cosine = w[j] * both, d_cosine = d[j] * row[j];
        da[j] += d[j] * cosine;
        along[j] += d_cosine * cosine;
        w[j] = row[j] * cosine;
        d[j] = d_cosine * both;
      }
      along[t] += sum;
    } else {
      for (int64_t j = 0; j <= t; ++j) {
        da[j] += d[j];
        w[j] = row[j];
      }
    }
    for (int64_t j = t + 1; j < columns; ++j) w[j] = 0, d[j] = 0;
  }
}
SACCADE_SIMD void weigh_backward(float* gram, float* d_w, const float* inverse, const float* a, float* d_a, float* along, int64_t C,
                                 int64_t first, int64_t count, bool dynamic) {
  weigh_backward_impl(gram, d_w, inverse, a, d_a, along, C, first, count, dynamic);
}
SACCADE_SIMD void weigh_backward(double* gram, double* d_w, const double* inverse, const double* a, double* d_a, double* along, int64_t C,
                                 int64_t first, int64_t count, bool dynamic) {
  weigh_backward_impl(gram, d_w, inverse, a, d_a, along, C, first, count, dynamic);
}

/// Without the share of z_t in its own norm: d_z_t −= along_t / (|z_t|² + eps) z_t.
template <class T>
SACCADE_INLINE void remove_radial_impl(T* __restrict d_z, const T* __restrict z, const T* along, const T* inverse, int64_t n, int64_t r) {
  for (int64_t t = 0; t < n; ++t) {
    const T pull = along[t] * inverse[t] * inverse[t];
    for (int64_t i = 0; i < r; ++i) d_z[t * r + i] -= pull * z[t * r + i];
  }
}
SACCADE_SIMD void remove_radial(float* d_z, const float* z, const float* along, const float* inverse, int64_t n, int64_t r) {
  remove_radial_impl(d_z, z, along, inverse, n, r);
}
SACCADE_SIMD void remove_radial(double* d_z, const double* z, const double* along, const double* inverse, int64_t n, int64_t r) {
  remove_radial_impl(d_z, z, along, inverse, n, r);
}

/// Working memory of one thread.
template <class T>
struct Workspace {
  PackedContext<T> packed;
  std::vector<T> products;  ///< W above M (both [count, columns]), so that their transposes multiply in one product
  std::vector<T> factors;   ///< d_y above z of the block
  std::vector<T> d_z;       ///< [n, r]
  std::vector<T> along;     ///< [n]
};

/// d_z of one context, and its share of d_A. With W = A * cos and M as above:
///   d_z = Wᵀ d_y + (M + Mᵀ) z − diag(along / (|z|² + eps)) z
template <class T>
void context_backward(const Contexts& contexts, int64_t index, const Sizes& s, const T* z, const T* A, const T* dy, T* d_A,
                      Workspace<T>& work) {
  const ContextRows rows = contexts.rows(index);
  PackedContext<T>& packed = work.packed;
  packed.load(z, s.r, rows);
  const int64_t n = packed.n, r = s.r;
  work.products.resize(static_cast<size_t>(2 * kBlock * n));
  work.factors.resize(static_cast<size_t>(2 * kBlock * r));
  work.d_z.assign(static_cast<size_t>(n * r), T(0));
  work.along.assign(static_cast<size_t>(n), T(0));
  const int64_t corner = rows.first_position * (s.C + 1);
  each_query_block(rows, contexts.first_run(index), kBlock, [&](int64_t first, int64_t row, int64_t count) {
    const int64_t columns = first + count;
    const T* d_block = dy + contexts.result(row) * r;
    T *w = work.products.data(), *m = w + count * columns;
    if (s.dynamic) gram_block(packed, first, count, w);
    cpu::gemm_serial<T>(false, true, count, columns, r, 1, d_block, r, packed.z.data(), r, false, m, columns);
    weigh_backward(w, m, packed.inverse.data(), A + corner, d_A + corner, work.along.data(), s.C, first, count, s.dynamic);
    if (s.dynamic) {
      std::copy_n(d_block, count * r, work.factors.data());
      std::copy_n(packed.row(first), count * r, work.factors.data() + count * r);
      cpu::gemm_serial<T>(false, false, count, r, columns, 1, m, columns, packed.z.data(), r, true, work.d_z.data() + first * r, r);
      cpu::gemm_serial<T>(true, false, columns, r, 2 * count, 1, w, columns, work.factors.data(), r, true, work.d_z.data(), r);
    } else {
      cpu::gemm_serial<T>(true, false, columns, r, count, 1, w, columns, d_block, r, true, work.d_z.data(), r);
    }
  });
  if (s.dynamic) remove_radial(work.d_z.data(), packed.z.data(), work.along.data(), packed.inverse.data(), n, r);
}

template <class T>
void store(const T* from, T* to, int64_t n, bool add) {
  for (int64_t i = 0; i < n; ++i) to[i] = (add ? to[i] : T(0)) + from[i];
}

/// Chosen and own rows belong to one context each; the padding rows gather over the group's contexts.
template <class T>
void store_rows(const ContextRows& rows, int64_t r, const T* d_context, T* d_z, bool add, T* d_padding) {
  store(d_context, d_padding, rows.runs[0].count * r, true);
  int64_t index = rows.runs[0].count;
  for (size_t i = 1; i < rows.runs.size(); ++i) {
    store(d_context + index * r, d_z + rows.runs[i].row * r, rows.runs[i].count * r, add);
    index += rows.runs[i].count;
  }
}

/// sum = (or +=) Σ parts, in order. parts [groups, n]
template <class T>
void add_parts(const T* parts, int64_t groups, int64_t n, T* sum, bool add) {
  parallel_ranges(n, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t g = 0; g < groups; ++g) store(parts + g * n + begin, sum + begin, end - begin, add || g > 0);
  });
}

template <class T>
void backward(const Contexts& contexts, const Sizes& s, int64_t groups, const T* z, const T* A, const T* dy, T* d_z, bool add_z, T* parts_A,
              T* parts_padding, T* d_A, bool add_A) {
  const int64_t padding = contexts.layout.pad_rows() * s.r;
  parallel_for(groups, [&](int64_t group) {
    thread_local Workspace<T> work;
    T* part_A = parts_A + group * s.C * s.C;
    T* part_padding = parts_padding ? parts_padding + group * padding : nullptr;
    std::fill(part_A, part_A + s.C * s.C, T(0));
    if (part_padding) std::fill(part_padding, part_padding + padding, T(0));
    for (int64_t index = group; index < contexts.count(); index += groups) {
      context_backward(contexts, index, s, z, A, dy, part_A, work);
      store_rows(contexts.rows(index), s.r, work.d_z.data(), d_z, add_z, part_padding);
    }
  });
  if (d_A) add_parts(parts_A, groups, s.C * s.C, d_A, add_A);
  if (padding) add_parts(parts_padding, groups, padding, d_z, add_z);
}

int64_t group_count(const Contexts& contexts, int64_t C) {
  return std::max<int64_t>(1, std::min({contexts.count(), kGroups, std::max<int64_t>(2, kGroupElements / (C * C))}));
}

}  // namespace

Gate gate_with(Tape& tape, const Tensor& l, Activation f, Activation slope) {
  if (f != Activation::none || plain_kernels() || !tape.device().targets_cuda()) return {};
  return {l, tape.empty(l.shape(), l.dtype()), slope == Activation::relu || slope == Activation::relu2};
}

Tensor contextualize(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, bool own_only) {
  return contextualize_stage(tape, Z, A, layout, dynamic, own_only, {});
}

Tensor contextualize_stage(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, bool own_only,
                           const FusedNeighbours& neighbours) {
  const Sizes s{Z.dim(1), layout.context_width(), dynamic};
  expect(Z.rank() == 2 && Z.dim(0) == layout.rows() && A.shape() == Shape{s.C, s.C}, "avey.contextualize", "Z is ", Z, ", A is ", A,
         "; the layout has ", layout.rows(), " rows, contexts of ", s.C);
  expect(layout.offset == 0 || !tape.device().targets_cuda(), "avey.contextualize", "contexts begin at position ", layout.offset,
         "; expected 0 on CUDA");
  Tensor Y = neighbours.gate.alone ? neighbours.gate.product : tape.empty({own_only ? layout.own_rows() : layout.rows(), s.r}, Z.dtype());
  const double product = 2.0 * static_cast<double>(s.r) * layout.causal_pairs(own_only);
  const double bytes = static_cast<double>(Z.bytes() + Y.bytes() + A.bytes());
  const cuda::ContextualizerShape shape{layout, s.r, dynamic, own_only};
  const bool on_cuda = tape.device().targets_cuda();
  tape.note_tensor_cores(
      "avey.contextualize", Z.dtype(), !dynamic || shape.tiled(Z.dtype()),
      "splits of " + std::to_string(layout.split) + " and a width of " + std::to_string(s.r) + " that is mixed; multiples of 8 have one");
  const Gate& gate = neighbours.gate;
  expect(!gate.product || (on_cuda && gate.factor.shape() == Y.shape()), "avey.contextualize", "a gate is of Y's shape, on CUDA; it is ",
         gate.factor);
  const Tensor inverse = on_cuda && shape.tiled(Z.dtype()) ? tape.empty({Z.dim(0)}, DType::f32) : Tensor();
  {
    auto scratch = on_cuda ? cuda::contextualizer_scratch(tape, shape, Z.dtype(), false) : cuda::ContextualizerScratch{};
    if (inverse) scratch.inverse = inverse;
    tape.run(
        "avey.contextualize", {(dynamic ? 2 : 1) * product, bytes},
        [&] {
          dispatch(Z.dtype(), [&](auto zero) {
            using T = decltype(zero);
            forward<T>({layout, own_only}, s, Z.data<T>(), A.data<T>(), Y.data<T>());
          });
        },
        [&] { cuda::contextualize(tape.device().index, shape, scratch, Z, A, Y, gate, neighbours.squares); });
  }
  tape.record({Z, A, neighbours.shift}, {&Y}, [=, slope = neighbours.slope, shift = neighbours.shift](Tape& t) {
    const Contexts contexts{layout, own_only};
    const Tensor dY = t.grad(Y);
    GradTarget dZ = t.grad_target(Z);
    const GradTarget dA = t.grad_target(A), dshift = t.grad_target(shift);
    if (!dZ) dZ.tensor = t.empty(Z.shape(), Z.dtype());
    const int64_t groups = group_count(contexts, s.C);
    const Tensor parts_A = on_cuda ? Tensor() : t.empty({groups, s.C, s.C}, Z.dtype());
    const Tensor parts_padding = layout.pad_rows() && !on_cuda ? t.empty({groups, layout.pad_rows(), s.r}, Z.dtype()) : Tensor();
    auto scratch = on_cuda ? cuda::contextualizer_scratch(t, shape, Z.dtype(), true) : cuda::ContextualizerScratch{};
    if (inverse) scratch.inverse = inverse;
    if (dshift) scratch.columns = t.empty({shape.column_parts(), s.r}, DType::f32);
    t.run(
        "avey.contextualize.backward", {(dynamic ? 5 : 2) * product, 2 * bytes},
        [&] {
          dispatch(Z.dtype(), [&](auto zero) {
            using T = decltype(zero);
            backward<T>(contexts, s, groups, Z.data<T>(), A.data<T>(), dY.data<T>(), dZ.tensor.data<T>(), dZ.add, parts_A.data<T>(),
                        parts_padding ? parts_padding.data<T>() : nullptr, dA ? dA.tensor.data<T>() : nullptr, dA.add);
          });
        },
        [&] {
          expect(slope == Activation::none || (on_cuda && !dZ.add), "avey.contextualize", "a gradient with a slope is made once, on CUDA");
          cuda::contextualize_backward(t.device().index, shape, scratch, Z, A, dY, dZ.tensor, dZ.add, dA.tensor, dA.add, slope, dshift);
        });
  });
  return Y;
}

}  // namespace saccade::avey

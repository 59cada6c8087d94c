#pragma once
#include <algorithm>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/avey/gate_cuda.h"
#include "kernels/ops/avey/processor_stages.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda {

/// What contextualize works on; see kernels/ops/avey/contextualizer.h. The contexts are handled in groups whose [positions, C]
/// products fit into bounded memory.
struct ContextualizerShape {
  avey::ContextLayout layout;
  int64_t r = 0;
  bool dynamic = true, own_only = false;

  int64_t contexts() const { return layout.batch * layout.splits(); }
  int64_t C() const { return layout.context_width(); }
  int64_t first_query() const { return own_only ? layout.split * layout.top_k : 0; }
  int64_t queries() const { return C() - first_query(); }
  int64_t group() const;  ///< contexts at a time
  /// Which way a size goes: on tensor cores, tile by tile; else as products of whole rectangles.
  bool tiled(DType dtype) const { return tensor_core_type(dtype) && dynamic && r % 8 == 0 && layout.split % 8 == 0; }
  /// Of those, on Hopper: a block can hold a whole context, and neither W nor M is written.
  bool one_tile() const { return C() <= 128 && r <= 256; }
  /// Of the others, on Hopper: contexts consist of whole runs of 32 rows that lie one behind the other, which TMA brings for
  /// the first kernel of the backward. The other kernels were slower that way: less of a tile's products than of what follows them, and
  /// half as many warps to hide it.
  bool in_runs() const { return layout.split % 32 == 0 && layout.tokens % layout.split == 0; }
  /// Parts of sums over the rows of a gradient of Z: of tiles or of blocks, and of every row of the padding.
  int64_t column_parts() const { return std::max(contexts() * ((C() + 127) / 128), kSumParts) + layout.pad_rows(); }
  /// Contexts that have padding in front.
  int64_t padded_contexts() const { return layout.batch * std::min(layout.splits(), layout.top_k); }
};

/// Scratch of one group: rectangles of the activations' type and f32. Tiles need weights, slopes and
/// the last lines only, and `inverse` [rows], which the caller provides: the backward reads what the forward left in it.
struct ContextualizerScratch {
  Tensor z, inverse;          ///< [n, C, r], f32 [n, C]
  Tensor products, weights;   ///< f32 and activations' type [n, queries, C]
  Tensor y;                   ///< [n, queries, r]: the result, or its gradient
  Tensor d_products, slopes;  ///< backward: like products and weights
  Tensor d_z, along;          ///< backward: f32 [n, C, r]
  Tensor padding;             ///< backward: f32 [2, pad_rows, r]; tiles: [groups or padded contexts, pad_rows, r]
  Tensor by_query, by_key;    ///< backward: f32 [n, tiles, C], sums of d_cos * cos over the keys and queries of a tile
  Tensor parts_A;             ///< backward: f32 [groups, C, C]
  Tensor columns;             ///< backward: f32 [column_parts, r]
};
ContextualizerScratch contextualizer_scratch(Tape& tape, const ContextualizerShape& shape, DType dtype, bool backward);

/// Z, Y and the gate's f32 or bf16, A f32.
void contextualize(int device, const ContextualizerShape& shape, const ContextualizerScratch& scratch, const Tensor& Z, const Tensor& A,
                   const Tensor& Y, const avey::Gate& gate, const Tensor& squares);
/// Empty d_A: not wanted. d_shift: where the sum of d_Z's rows goes, if it is wanted. With a slope (none, relu, relu2) d_Z is multiplied by
/// slope'(Z); then add_z is false.
void contextualize_backward(int device, const ContextualizerShape& shape, const ContextualizerScratch& scratch, const Tensor& Z,
                            const Tensor& A, const Tensor& dY, const Tensor& dZ, bool add_z, const Tensor& dA, bool add_A, Activation slope,
                            const GradTarget& d_shift);

/// inverse f32 [rows] = 1 / sqrt(|z|² + 1e-8); Z bf16 [rows, r]; squares f32 [tiles, rows], sums of parts of |z|², or empty.
void inverse_norms(Stream stream, const Tensor& Z, const Tensor& squares, const Tensor& inverse);
/// The same in tiles; shape.tiled.
void contextualize_tiles(int device, const ContextualizerShape& shape, const ContextualizerScratch& scratch, const Tensor& Z,
                         const Tensor& A, const Tensor& Y, const avey::Gate& gate, const Tensor& squares);
/// How many rows of scratch.columns it has filled comes back.
int64_t contextualize_tiles_backward(int device, const ContextualizerShape& shape, const ContextualizerScratch& scratch, const Tensor& Z,
                                     const Tensor& A, const Tensor& dY, const Tensor& dZ, bool add_z, const Tensor& dA, bool add_A,
                                     Activation slope);

}  // namespace saccade::cuda

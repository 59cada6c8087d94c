#pragma once
#include "kernels/ops/avey/contextualizer.h"
#include "kernels/ops/avey/enricher.h"
#include "kernels/ops/avey/fuser.h"

/// The stages of neural_processor, for kernels/ops/avey alone: on CUDA a stage does work of its neighbours, and gradients that pass between
/// them are not those of the tensors they stand for.
namespace saccade::avey {

struct EnrichedStage : Enriched {
  /// Gradients of the parts are those of g's inputs already: who makes them multiplies by slope'(value).
  Activation slope = Activation::none;
  /// Then, for large weights: [tail / 2] and [tail / 2 + m − tail] without values, whose gradients are Σ rows of the gradients of r, and of
  /// l and h.
  Tensor shift_r = {}, shift = {};
  /// On CUDA f32 [tiles of columns, R], if any: sums of squares of r.
  Tensor squares = {};
};
/// `slope_by_consumers`: contextualize_stage and fuse_stage alone take the parts; on CUDA they then apply g' where its value is enough.
EnrichedStage enrich_stage(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation g, int64_t tail, int64_t Q,
                           bool slope_by_consumers);

/// What the fuser multiplies Y by, and where the product goes.
struct Gate {
  Tensor factor, product;  ///< Z_l and Y * Z_l, of Y's shape
  bool alone = false;      ///< Y itself is not kept: where Z_l is zero nobody asks for it, elsewhere the product tells
};
/// For f(Y) * Z_l, with the slope that goes with gradients of Z_l; empty where the fuser has to do it.
Gate gate_with(Tape& tape, const Tensor& l, Activation f, Activation slope);

/// What the neighbours of the contextualizer leave to it, on CUDA.
struct FusedNeighbours {
  Activation slope = Activation::none;  ///< d_Z is multiplied by slope'(Z)
  Gate gate;                            ///< applied on the way; its gradients are the fuser's
  Tensor squares, shift;                ///< EnrichedStage::squares; EnrichedStage::shift_r
};
/// With a gate that stands alone the product is in Y's place; its gradient is still Y's.
Tensor contextualize_stage(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, bool own_only,
                           const FusedNeighbours& neighbours);

/// gated: f(Y) * Z_l if the contextualizer has made it (CUDA, f none), else empty; Y may be the same (Gate::alone).
Tensor fuse_stage(Tape& tape, const Tensor& h, const Tensor& Y, const EnrichedStage& z, const Tensor& weight, const Tensor& bias,
                  Activation f, const Tensor& gated);

}  // namespace saccade::avey

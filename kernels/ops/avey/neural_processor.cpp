#include "kernels/ops/avey/neural_processor.h"

#include "kernels/ops/avey/processor_stages.h"

namespace saccade::avey {

Processed neural_processor(Tape& tape, const Tensor& h, const Tensor& x, const ProcessorWeights& weights, const ContextLayout& layout,
                           const ProcessorOptions& options) {
  const int64_t Q = options.own_only ? layout.own_rows() : layout.rows();
  const EnrichedStage z = enrich_stage(tape, x, weights.U, weights.b, options.enricher, options.tail, Q, true);
  const Gate gate = gate_with(tape, z.l, options.contextualizer, z.slope);
  const Tensor Y =
      contextualize_stage(tape, z.r, weights.A, layout, options.dynamic, options.own_only, {z.slope, gate, z.squares, z.shift_r});
  return {fuse_stage(tape, h, Y, z, weights.O, weights.c, options.contextualizer, gate.product), z.r};
}

}  // namespace saccade::avey

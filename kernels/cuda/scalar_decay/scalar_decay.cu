// Which kernels run the scalar-decay chunk form.
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay_plain.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay_tiles.cuh"

namespace saccade::cuda {
namespace {

/// What a pass begins with: the state given, carried from segment to segment where there are several.
const float* begin_forward(Stream stream, const DecayForm& in, const DecayScratch& scratch) {
  if (in.segments() == 1) return pointer_or_null<float>(in.start);
  if (scratch.made.given) return pointer<float>(scratch.made.given);
  decay::launch_segments(stream, in, scratch, in.start);
  return pointer<float>(scratch.given);
}
const float* begin_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  if (in.segments() == 1) return pointer_or_null<float>(out.d_end);
  decay::launch_segment_gradients(stream, in, scratch, out.d_o, out.d_end);
  return pointer<float>(scratch.given);
}

void forward_on_tensor_cores(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end) {
  decay::launch_scores(stream, in, scratch.scores);
  decay::launch_sweep<decay::Pass::outputs>(stream, in,
                                            {.scores = pointer<bf16>(scratch.scores),
                                             .out = pointer<bf16>(o),
                                             .from = begin_forward(stream, in, scratch),
                                             .to = pointer_or_null<float>(end)});
}

void backward_on_tensor_cores(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  const bf16 *scores = pointer<bf16>(scratch.scores), *d_o = pointer<bf16>(out.d_o);
  bf16 *states = pointer<bf16>(scratch.states), *d_states = pointer<bf16>(scratch.d_states);
  float *reads = pointer<float>(scratch.reads), *writes = pointer<float>(scratch.writes);
  if (!scratch.made.scores) decay::launch_scores(stream, in, scratch.scores);
  decay::launch_sweep<decay::Pass::states>(stream, in,
                                           {.d_o = d_o, .states = states, .from = begin_forward(stream, in, scratch), .reads = reads});
  decay::launch_sweep<decay::Pass::gradients>(stream, in,
                                              {.scores = scores,
                                               .d_o = d_o,
                                               .out = pointer_or_null<bf16>(out.dx.tensor),
                                               .add = out.dx.add,
                                               .states = d_states,
                                               .from = begin_backward(stream, in, scratch, out),
                                               .to = pointer_or_null<float>(out.d_start),
                                               .writes = writes,
                                               .d_step = pointer<float>(out.d_step),
                                               .d_skip = pointer<float>(out.d_skip)});
  decay::launch_key_gradients(stream, in,
                              {scores, d_o, states, d_states, reads, writes, pointer_or_null<bf16>(out.dq.tensor),
                               pointer_or_null<bf16>(out.dk.tensor), out.dq.add, out.dk.add, pointer_or_null<float>(out.dg)});
}

}  // namespace

void scalar_decay(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end) {
  (runs_on_tensor_cores(in) ? forward_on_tensor_cores : decay::plain_forward)(stream, in, scratch, o, end);
}

void scalar_decay_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out) {
  (runs_on_tensor_cores(in) ? backward_on_tensor_cores : decay::plain_backward)(stream, in, scratch, out);
}

}  // namespace saccade::cuda

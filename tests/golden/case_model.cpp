#include "tests/golden/case_model.h"

#include "tests/models/mixed_precision.h"

namespace saccade::test {

void set_parameters(const Model& model, const GoldenCase& c) {
  for (const Parameter& p : model.parameters()) {
    const Array& values = c.inputs.at(p.name);
    if (values.shape != p.value.shape())
      throw std::runtime_error(p.name + " is " + to_string(p.value.shape()) + ", the file has " + to_string(values.shape));
    from_doubles(p.value, values.values);
  }
}

GoldenResult run_model(const Model& model, const GoldenCase& c, DType dtype, Arena& arena) {
  const Tensor tokens = to_tensor(c.inputs.at("tokens"), DType::i32, arena), targets = to_tensor(c.inputs.at("targets"), DType::i32, arena);
  Tape tape(arena, true), plain(arena, false);
  for (Tape* t : {&tape, &plain}) compute_in(*t, arena, model.parameters(), dtype);
  model.bind_gradients(tape);
  const Tensor loss = model.loss(tape, tokens, targets);
  GoldenResult result;
  result.outputs["loss"] = to_array(loss);
  result.outputs["logits"] = to_array(model.logits(plain, tokens));
  tape.backward(loss, c.grad_outputs.at("loss").values.at(0));
  for (const Parameter& p : model.parameters()) result.grads[p.name] = to_array(p.grad);
  return result;
}

}  // namespace saccade::test

#include "tests/golden/stateful_case.h"

#include <stdexcept>

#include "tests/models/mixed_precision.h"

namespace saccade::test {
namespace {

void set_parameter(const Parameter& parameter, const Array& values) {
  const Shape& shape = parameter.value.shape();
  const bool row = shape.rank() == 2 && shape[0] == 1 && values.shape == Shape{shape[1]};  // a matrix of one row, there a vector
  if (!row && !(shape == values.shape))
    throw std::runtime_error(parameter.name + " is " + to_string(parameter.value.shape()) + ", the file has " + to_string(values.shape));
  from_doubles(parameter.value, values.values);
}

/// "layer1.mix.Wq" → "layer1." and "mix.Wq"; names outside the layers have no prefix.
std::string layer_prefix(const std::string& name) {
  return name.rfind("layer", 0) == 0 && name.find('.') != std::string::npos ? name.substr(0, name.find('.') + 1) : std::string();
}

/// Fills the parameters from the case. Returns the golden file's name of each; throws when one stays unset.
std::map<std::string, std::string> set_parameters(const std::vector<Parameter>& parameters, const GoldenCase& c,
                                                  const std::function<std::string(const std::string&)>& ours) {
  std::map<std::string, std::string> golden_names;
  for (const auto& [name, values] : c.inputs)
    for (const Parameter& p : parameters)
      if (p.name == ours(name)) set_parameter(p, values), golden_names[p.name] = name;
  for (const Parameter& p : parameters)
    if (!golden_names.contains(p.name)) throw std::runtime_error("the file has no " + p.name);
  return golden_names;
}

}  // namespace

ParameterNames model_names(const ParameterNames& mixer, ParameterNames block) {
  for (const auto& [golden, ours] : mixer) block["mix." + golden] = ours;
  return block;
}

ParameterNames llama_names() {
  return {{"emb", "embedding"},   {"norm_f_w", "final_norm"}, {"norm1_w", "attention_norm"}, {"norm2_w", "mlp_norm"},
          {"mlp.W_gate", "gate"}, {"mlp.W_up", "up"},         {"mlp.W_down", "down"}};
}

GoldenResult run_golden_part(const GoldenCase& c, DType dtype, Arena& arena, const ParameterNames& names,
                             const std::function<PartForward(ParameterMaker&)>& make, const std::string& prefix) {
  ParameterMaker maker(arena, accumulation_dtype(dtype), 1, true);
  const PartForward forward = make(maker);
  const std::vector<Parameter> parameters = maker.take();
  const auto golden_names = set_parameters(parameters, c, [&](const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? std::string() : prefix + found->second;
  });

  Tape tape(arena, true);
  compute_in(tape, arena, parameters, dtype);
  Tensors inputs, buffers;
  for (const Parameter& p : parameters) tape.bind_grad(p.value, buffers[golden_names.at(p.name)] = p.grad);
  for (const auto& [name, array] : c.inputs) {
    if (buffers.contains(name)) continue;
    inputs[name] = to_tensor(array, dtype, arena);
    inputs[name].set_differentiable(true);
    tape.bind_grad(inputs[name], buffers[name] = arena.allocate(array.shape, dtype));
  }
  const Tensors outputs = forward(tape, inputs);
  GoldenResult result;
  for (const auto& [name, tensor] : outputs) result.outputs[name] = to_array(tensor);
  std::vector<std::pair<Tensor, Tensor>> seeds;
  for (const auto& [name, array] : c.grad_outputs) seeds.emplace_back(outputs.at(name), to_tensor(array, outputs.at(name).dtype(), arena));
  tape.backward(seeds);
  for (const auto& [name, buffer] : buffers) result.grads[name] = to_array(buffer.reshape(c.inputs.at(name).shape));
  return result;
}

GoldenResult run_golden_mixer(const GoldenCase& c, DType dtype, Arena& arena, const std::string& id, const nlohmann::json& values,
                              const ParameterNames& names) {
  ModelShape shape;
  shape.width = c.inputs.at("x").shape[-1], shape.layers = 1, shape.position = "none";
  shape.heads = values.value("heads", int64_t{1});
  return run_golden_part(c, dtype, arena, names, [&](ParameterMaker& maker) -> PartForward {
    const std::shared_ptr<Mixer> mixer = architecture(id).make_mixer(shape, values, maker, 0);
    return [mixer](Tape& tape, const Tensors& inputs) {
      Pass pass;
      return Tensors{{"y", mixer->forward(tape, inputs.at("x"), pass)}};
    };
  });
}

GoldenResult run_golden_model(const GoldenCase& c, DType dtype, Arena& arena, nlohmann::json architecture, const ParameterNames& names) {
  const int64_t vocabulary = c.inputs.at("emb").shape[0], length = c.inputs.at("tokens").shape[1];
  architecture["width"] = c.inputs.at("emb").shape[1];
  architecture["layers"] = c.attributes.at("layers");
  const auto model = make_model(resolve_architecture(architecture, length), vocabulary, length, arena, accumulation_dtype(dtype), 1, true);
  const auto golden_names = set_parameters(model->parameters(), c, [&](const std::string& name) {
    const std::string prefix = layer_prefix(name);
    const auto found = names.find(name.substr(prefix.size()));
    return found == names.end() ? std::string() : prefix + found->second;
  });
  const Tensor tokens = to_tensor(c.inputs.at("tokens"), dtype, arena), targets = to_tensor(c.inputs.at("targets"), dtype, arena);
  GoldenResult result;
  Tape tape(arena, true), plain(arena, false);
  for (Tape* t : {&tape, &plain}) compute_in(*t, arena, model->parameters(), dtype);
  model->bind_gradients(tape);
  const Tensor loss = model->loss(tape, tokens, targets);
  result.outputs["loss"] = to_array(loss);
  result.outputs["logits"] = to_array(model->logits(plain, tokens));
  tape.backward(loss);
  for (const Parameter& p : model->parameters()) result.grads[golden_names.at(p.name)] = to_array(p.grad);
  return result;
}

}  // namespace saccade::test

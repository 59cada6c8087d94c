#include <algorithm>

#include "models/layers/channel_mix.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

/// The golden files write low-rank matrices [in, out], the project all of them [out, in].
const std::vector<std::string> kLowRank{"decay_A", "decay_B", "w1", "w2", "a1", "a2", "v1", "v2", "g1", "g2"};
const std::vector<std::string> kStreams{"decay", "key", "value", "receptance", "gate"};  ///< order of RWKV-6's mix_A, mix_B

bool ends_with(const std::string& text, const std::string& end) {
  const size_t at = text.size() - std::min(text.size(), end.size());
  return text.compare(at, std::string::npos, end) == 0 && (at == 0 || text[at - 1] == '.');
}
bool is_low_rank(const std::string& name) {
  return std::any_of(kLowRank.begin(), kLowRank.end(), [&](const std::string& end) { return ends_with(name, end); });
}

/// Columns first … first+columns−1 of [rows, width] as [columns, rows].
Array transposed(const Array& x, int64_t rows, int64_t width, int64_t first, int64_t columns) {
  Array y{{columns, rows}, {}, false};
  for (int64_t j = first; j < first + columns; ++j)
    for (int64_t i = 0; i < rows; ++i) y.values.push_back(x.values[static_cast<size_t>(i * width + j)]);
  return y;
}
Array transposed(const Array& x) { return transposed(x, x.shape[0], x.shape[1], 0, x.shape[1]); }

/// mix_A [C, 5R] → five [R, C];   mix_B [5, R, C] → five [C, R]
Array stream_of(const std::string& name, const Array& x, size_t stream) {
  const auto at = static_cast<int64_t>(stream);
  if (ends_with(name, "mix_A")) return transposed(x, x.shape[0], x.shape[1], at * (x.shape[1] / 5), x.shape[1] / 5);
  const int64_t size = x.shape[1] * x.shape[2];
  const Array one{{x.shape[1], x.shape[2]}, {x.values.begin() + at * size, x.values.begin() + (at + 1) * size}, false};
  return transposed(one);
}

/// The same arrays as the project holds them: "mix_A" becomes "mix_A.decay" and so on.
Arrays converted(const Arrays& arrays) {
  Arrays result;
  for (const auto& [name, x] : arrays) {
    if (ends_with(name, "mix_A") || ends_with(name, "mix_B"))
      for (size_t s = 0; s < kStreams.size(); ++s) result[name + "." + kStreams[s]] = stream_of(name, x, s);
    else
      result[name] = is_low_rank(name) ? transposed(x) : x;
  }
  return result;
}

/// Runs a case whose arrays are converted, and converts its gradients back.
GoldenResult run_converted(const GoldenCase& c, const std::function<GoldenResult(const GoldenCase&)>& run) {
  GoldenCase ours = c;
  ours.inputs = converted(c.inputs);
  GoldenResult result = run(ours);
  for (const auto& [name, expected] : c.grads) {
    if (is_low_rank(name)) result.grads[name] = transposed(result.grads.at(name));
    if (!ends_with(name, "mix_A") && !ends_with(name, "mix_B")) continue;
    Array whole{expected.shape, {}, false};
    std::vector<Array> parts;
    for (const std::string& stream : kStreams) parts.push_back(transposed(result.grads.at(name + "." + stream)));
    const size_t rows = ends_with(name, "mix_A") ? static_cast<size_t>(expected.shape[0]) : 1;
    for (size_t row = 0; row < rows; ++row)
      for (const Array& part : parts) {
        const auto piece = static_cast<int64_t>(part.values.size() / rows), from = static_cast<int64_t>(row) * piece;
        whole.values.insert(whole.values.end(), part.values.begin() + from, part.values.begin() + from + piece);
      }
    result.grads[name] = whole;
  }
  return result;
}

const ParameterNames kMatrices{{"Wr", "receptance"}, {"Wk", "key"},        {"Wv", "value"},        {"Wg", "output_gate"},
                               {"Wo", "output"},     {"bonus", "bonus"},   {"ln_w", "group_gain"}, {"ln_b", "group_bias"},
                               {"decay", "decay"},   {"mu_x", "mix_input"}};

ParameterNames time_mix_names() {
  ParameterNames names = kMatrices;
  for (const auto& [letter, word] :
       ParameterNames{{"r", "receptance"}, {"w", "decay"}, {"k", "key"}, {"v", "value"}, {"g", "gate"}, {"a", "rate"}})
    names["mu_" + letter] = names["x_" + letter] = "mix_" + word;
  for (const std::string& stream : kStreams)
    names["mix_A." + stream] = "mix_" + stream + "_down", names["mix_B." + stream] = "mix_" + stream + "_up";
  for (const auto& [letter, word] : ParameterNames{{"w", "decay"}, {"a", "rate"}, {"v", "value_blend"}, {"g", "output_gate"}})
    names[letter + "0"] = word, names[letter + "1"] = word + "_down", names[letter + "2"] = word + "_up";
  names["decay_A"] = "decay_down", names["decay_B"] = "decay_up";
  names["k_k"] = "removal_scale", names["k_a"] = "rate_scale", names["r_k"] = "bonus";
  return names;
}

ParameterNames channel_mix_names() {
  return {{"mu_k", "mix_key"}, {"x_k", "mix_key"}, {"mu_r", "mix_receptance"}, {"Wk", "key"}, {"Wr", "receptance"}, {"Wv", "value"}};
}

ParameterNames names_of_model() {
  ParameterNames names{{"emb", "embedding"},        {"head", "output"},
                       {"ln0_w", "embedding_norm"}, {"ln0_b", "embedding_norm_bias"},
                       {"ln1_w", "mixer_norm"},     {"ln1_b", "mixer_norm_bias"},
                       {"ln2_w", "channel_norm"},   {"ln2_b", "channel_norm_bias"},
                       {"ln_out_w", "final_norm"},  {"ln_out_b", "final_norm_bias"}};
  for (const auto& [name, word] : time_mix_names()) names["att." + name] = word;
  for (const auto& [name, word] : channel_mix_names()) names["ffn." + name] = "channel_" + word;
  return names;
}

/// Ranks as the arrays of the case have them; "" or "layer1.att." stands before their names.
nlohmann::json ranks_of(const GoldenCase& c, const std::string& prefix) {
  nlohmann::json ranks = nlohmann::json::object();
  const auto put = [&](const char* setting, const std::string& name) {
    if (c.inputs.contains(prefix + name)) ranks[setting] = c.inputs.at(prefix + name).shape[0];
  };
  put("mix_rank", "mix_A.key"), put("decay_rank", "decay_A"), put("decay_rank", "w1"), put("rate_rank", "a1"), put("value_rank", "v1"),
      put("gate_rank", "g1");
  return ranks;
}

/// A time mix as layer `layer` of two.
GoldenResult run_time_mix(const GoldenCase& golden, DType dtype, Arena& arena, const std::string& id, int64_t layer) {
  return run_converted(golden, [&](const GoldenCase& c) {
    ModelShape shape;
    shape.width = c.inputs.at("x").shape[2], shape.layers = 2, shape.heads = c.attributes.at("H"), shape.position = "none";
    const auto make = [&](ParameterMaker& maker) -> PartForward {
      const std::shared_ptr<Mixer> mixer = architecture(id).make_mixer(shape, ranks_of(c, ""), maker, layer);
      return [mixer](Tape& tape, const Tensors& inputs) {
        Pass pass;
        if (inputs.contains("v_first")) pass.first_values = inputs.at("v_first");
        const Tensor y = mixer->forward(tape, inputs.at("x"), pass);
        Tensors outputs{{"y", y}};
        if (pass.first_values) outputs["v_first"] = pass.first_values;
        return outputs;
      };
    };
    return run_golden_part(c, dtype, arena, time_mix_names(), make, layer == 0 ? "layer0." : "layer1.");
  });
}

GoldenResult run_channel_mix(const GoldenCase& c, DType dtype, Arena& arena, const std::string& form) {
  ModelShape shape;
  shape.width = c.inputs.at("x").shape[2], shape.layers = 2;
  return run_golden_part(
      c, dtype, arena, channel_mix_names(),
      [&](ParameterMaker& maker) -> PartForward {
        const auto mix = std::make_shared<ChannelMix>(shape, ChannelMix::parse(form), c.attributes.at("F"), maker, 0);
        return [mix](Tape& tape, const Tensors& inputs) { return Tensors{{"y", (*mix)(tape, inputs.at("x"))}}; };
      },
      "layer0.channel_");
}

GoldenResult run_model(const GoldenCase& golden, DType dtype, Arena& arena) {
  return run_converted(golden, [&](const GoldenCase& c) {
    nlohmann::json settings = ranks_of(c, "layer1.att.");
    settings.update({{"mixer", c.name}, {"heads", c.attributes.at("H")}, {"mlp_width", c.inputs.at("layer0.ffn.Wk").shape[0]}});
    return run_golden_model(c, dtype, arena, settings, names_of_model());
  });
}

/// Initial values that are formulas: "rwkv7/C64_head16_of4/layer2", "att_x_r", "ffn_x_k" …
GoldenResult run_init(const GoldenCase& c, DType dtype, Arena& arena) {
  const std::string id = c.name.substr(0, c.name.find('/')), form = id.substr(id.size() - 1);
  const int64_t width = c.attributes.at("C"), head = c.attributes.at("head"), layer = c.attributes.at("layer");
  ModelShape shape;
  shape.width = width, shape.heads = width / head, shape.layers = c.attributes.at("layers"), shape.position = "none";
  ParameterMaker maker(arena, accumulation_dtype(dtype), 1, false);
  architecture(id).make_mixer(shape, nlohmann::json::object(), maker, layer);
  const ChannelMix mix(shape, ChannelMix::parse(form), width, maker, layer);
  std::map<std::string, Array> made;
  for (const Parameter& p : maker.take()) made[p.name.substr(p.name.find('.') + 1)] = to_array(p.value);
  GoldenResult result;
  for (const auto& [name, expected] : c.outputs) {
    const std::string part = name.substr(0, 4), rest = name.substr(4);
    const std::string ours = part == "att_" ? time_mix_names().at(rest) : "channel_" + channel_mix_names().at(rest);
    if (made.contains(ours)) result.outputs[name] = made.at(ours);
    if (!made.contains(ours) && layer == 0 && rest == "v0") result.outputs[name] = expected;  // layer 0 has no blend of values
  }
  return result;
}

template <class... More>
GoldenRunner with(GoldenResult (*run)(const GoldenCase&, DType, Arena&, More...), std::type_identity_t<std::decay_t<More>>... more) {
  return [=](const GoldenCase& c, DType dtype, Arena& arena) { return run(c, dtype, arena, more...); };
}

const RegisterGolden five("layers/rwkv5_time_mix", with(run_time_mix, "rwkv5", 0)),
    six("layers/rwkv6_time_mix", with(run_time_mix, "rwkv6", 0)), first("layers/rwkv7_time_mix_layer0", with(run_time_mix, "rwkv7", 0)),
    later("layers/rwkv7_time_mix_layer1", with(run_time_mix, "rwkv7", 1)),
    five_channels("layers/rwkv5_channel_mix", with(run_channel_mix, "5")),
    six_channels("layers/rwkv6_channel_mix", with(run_channel_mix, "6")),
    seven_channels("layers/rwkv7_channel_mix", with(run_channel_mix, "7")), rwkv5("models/rwkv5", run_model),
    rwkv6("models/rwkv6", run_model), rwkv7("models/rwkv7", run_model), initial("rwkv_init", run_init);

}  // namespace
}  // namespace saccade::test

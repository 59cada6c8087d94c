#include "analysis/evaluation/benchmark_json.h"

#include "models/architectures/registry.h"

namespace saccade {

using Json = nlohmann::json;

namespace {

Json to_json(const std::vector<OpShare>& profile) {
  Json ops = Json::array();
  for (const OpShare& op : profile)
    ops.push_back({{"op", op.name}, {"calls", op.calls}, {"ms", op.seconds * 1e3}, {"flops", op.cost.flops}, {"bytes", op.cost.bytes}});
  return ops;
}

Json to_json(const DecodingBatch& batch, int64_t length) {
  Json json{{"batch", batch.sequences}};
  if (!batch.refusal.empty()) {
    json["refusal"] = batch.refusal;
    return json;
  }
  json.update({{"prefill_ms", batch.prefill * 1e3},
               {"step", to_json(batch.step)},
               {"tokens", batch.tokens},
               {"tokens_per_s", batch.tokens_per_second()},
               {"whole_tokens_per_s", batch.whole_tokens_per_second(length)},
               {"peak_bytes", batch.peak_bytes}});
  return json;
}

Json to_json(const DecodingPoint& point) {
  Json json{{"length", point.length}, {"batches", Json::array()}};
  if (point.refusal.empty())
    json.update({{"prompt", to_json(point.prompt)},
                 {"token", to_json(point.token)},
                 {"state_bytes", point.state_bytes},
                 {"peak_bytes", point.peak_bytes}});
  else
    json["refusal"] = point.refusal;
  if (!point.profile.empty()) json["profile"] = to_json(point.profile);
  for (const DecodingBatch& batch : point.batches) json["batches"].push_back(to_json(batch, point.length));
  return json;
}

/// The entry of `list` that has the same values under `keys`, with times; null where there is none.
const Json* entry_like(const Json& list, const Json& entry, std::initializer_list<const char*> keys) {
  for (const Json& each : list) {
    bool alike = !each.contains("refusal");
    for (const char* key : keys) alike = alike && each.contains(key) && each.at(key) == entry.at(key);
    if (alike) return &each;
  }
  return nullptr;
}

Json named(const Json& list, const std::string& name) {
  Json found = Json::array();
  for (const Json& each : list)
    if (each.at("preset") == name) found.push_back(each);
  return found;
}

double ratio(const Json& a, const Json& b) { return a.get<double>() / b.get<double>(); }

void add_relative_batches(Json& point, const Json& reference) {
  for (Json& batch : point.at("batches")) {
    const Json* like = batch.contains("refusal") ? nullptr : entry_like(reference.at("batches"), batch, {"batch"});
    if (!like) continue;
    batch["relative"] = ratio(batch.at("tokens_per_s"), like->at("tokens_per_s"));
    batch["whole_relative"] = ratio(batch.at("whole_tokens_per_s"), like->at("whole_tokens_per_s"));
  }
}

void add_relative_points(Json& points, const Json& references) {
  for (Json& point : points)
    for (const Json& reference : references) {
      if (reference.at("length") != point.at("length")) continue;
      add_relative_batches(point, reference);
      if (point.contains("refusal") || reference.contains("refusal")) continue;
      point["relative"] = ratio(reference.at("prompt").at("ms"), point.at("prompt").at("ms"));
      point["relative_token"] = ratio(reference.at("token").at("ms"), point.at("token").at("ms"));
    }
}

}  // namespace

Json to_json(const Timing& t) {
  return {{"name", t.name},        {"ms", t.median * 1e3},  {"fastest_ms", t.fastest * 1e3},        {"slowest_ms", t.slowest * 1e3},
          {"flops", t.cost.flops}, {"bytes", t.cost.bytes}, {"gflops_per_s", t.gflops_per_second()}};
}

Json to_json(const StepBenchmark& b) {
  Json json{{"preset", b.work.name},
            {"title", architecture_title(b.work.config.architecture)},
            {"sequence_length", b.work.config.data.sequence_length},
            {"batch_tokens", b.work.config.training.batch_tokens},
            {"ranks", b.ranks},
            {"device", to_string(b.device)},
            {"processor", cpu_name()},
            {"gpu", gpu_name(b.device)}};
  if (!b.refusal.empty()) {
    json["refusal"] = b.refusal;
    return json;
  }
  json.update(to_json(b.step));
  json.erase("name");
  json.update({{"parameters", b.parameters},
               {"threads", b.threads},
               {"tokens_per_s", b.tokens_per_second()},
               {"peak_bytes", b.peak_bytes},
               {"loss", b.loss}});
  if (!b.profile.empty()) json["profile"] = to_json(b.profile);
  return json;
}

Json to_json(const DecodingBenchmark& b, const std::string& device) {
  Json points = Json::array();
  for (const DecodingPoint& point : b.points) points.push_back(to_json(point));
  return {{"preset", b.preset.name},
          {"title", b.title},
          {"parameters", b.parameters},
          {"threads", b.threads},
          {"device", device},
          {"processor", cpu_name()},
          {"gpu", gpu_name(parse_device(device))},
          {"peak_bytes", b.peak_bytes},
          {"points", points}};
}

void add_relative(Json& result, const std::string& name) {
  if (result.contains("steps")) {
    const Json references = named(result.at("steps"), name);
    for (Json& step : result.at("steps"))
      if (const Json* like = step.contains("refusal") ? nullptr : entry_like(references, step, {"sequence_length", "batch_tokens"}))
        step["relative"] = ratio(step.at("tokens_per_s"), like->at("tokens_per_s"));
  }
  if (!result.contains("decoding")) return;
  const Json references = named(result.at("decoding"), name);
  for (Json& model : result.at("decoding"))
    for (const Json& reference : references) add_relative_points(model.at("points"), reference.at("points"));
}

}  // namespace saccade

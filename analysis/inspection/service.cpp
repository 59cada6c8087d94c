#include "analysis/inspection/service.h"

#include <algorithm>
#include <initializer_list>

#include "analysis/inspection/base64.h"
#include "analysis/inspection/head_scores.h"
#include "analysis/inspection/item_text.h"
#include "analysis/inspection/symbol_answers.h"
#include "analysis/probes/capture_maps.h"
#include "models/config_text.h"
#include "models/suggest.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// A request's parameters, each asked for once by name; what nobody asked for is an error.
class Parameters {
 public:
  Parameters(const Json& values, std::initializer_list<const char*> known) : values_(values) {
    if (!values.is_object()) throw UsageError("parameters are no object");
    for (auto value = values.begin(); value != values.end(); ++value)
      if (std::find(known.begin(), known.end(), value.key()) == known.end())
        throw UsageError("unknown parameter \"" + value.key() + "\", expected " + alternatives({known.begin(), known.end()}));
  }
  int64_t number(const char* key, int64_t least, int64_t most, std::optional<int64_t> usual = {}) const {
    if (!values_.contains(key) && usual) return *usual;
    const Json& value = at(key);
    const auto whole = whole_number<int64_t>(value);
    if (!whole || *whole < least || *whole > most)
      throw UsageError(std::string(key) + " is " + value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40) + "; expected " +
                       std::to_string(least) + " to " + std::to_string(most));
    return *whole;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) throw UsageError(std::string(key) + " is no text");
    return value.get<std::string>();
  }

 private:
  const Json& at(const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw UsageError(std::string("parameter \"") + key + "\" is missing");
    return *found;
  }
  const Json& values_;
};

constexpr int64_t kAnyNumber = int64_t{1} << 40;

Json json_of(const Prediction& p) { return {{"token", p.token}, {"piece", p.piece}, {"logit", p.logit}, {"probability", p.probability}}; }

Json json_of(const QueryPredictions& predictions) {
  Json top = Json::array();
  for (const Prediction& p : predictions.top) top.push_back(json_of(p));
  return {{"top", top},
          {"target", predictions.target ? json_of(*predictions.target) : Json()},
          {"answer", predictions.answer ? json_of(*predictions.answer) : Json()}};
}

const char* unit_name(Selection::Unit unit) {
  switch (unit) {
    case Selection::Unit::element: return "element";
    case Selection::Unit::chunk: return "chunk";
    case Selection::Unit::split: return "split";
  }
  return "";
}

Json error_of(const std::string& message, int code) { return {{"message", message}, {"code", code}}; }

}  // namespace

std::string InspectionService::answer(const std::string& line) {
  Json reply = {{"id", nullptr}};
  try {
    if (static_cast<int64_t>(line.size()) > kLongestLine)
      throw UsageError("a request of more than " + std::to_string(kLongestLine) + " bytes");
    const Json request = parse_json_or_discard(line);
    if (!request.is_object()) throw UsageError("the request is no JSON object");
    if (request.contains("id") && (request["id"].is_number_integer() || request["id"].is_string())) reply["id"] = request["id"];
    if (!request.contains("method") || !request["method"].is_string()) throw UsageError("the request has no method");
    reply["result"] = result_of(request["method"], request.value("parameters", Json::object()));
  } catch (const Error& error) {
    reply["error"] = error_of(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    reply["error"] = error_of("out of memory", 4);
  } catch (const std::exception& error) {
    reply["error"] = error_of(std::string("internal error: ") + error.what(), 1);
  }
  return reply.dump(-1, ' ', false, Json::error_handler_t::replace);
}

nlohmann::json InspectionService::result_of(const std::string& method, const Json& parameters) {
  if (method == "hello") return hello();
  if (method == "text") return read_text(parameters);
  if (method == "map") return map(parameters);
  if (method == "predictions") return predictions(parameters);
  if (method == "change") return change(parameters);
  throw UsageError("unknown method \"" + method.substr(0, 40) + "\", expected hello, text, map, predictions or change");
}

Inspector& InspectionService::inspector() {
  if (!inspector_) inspector_.emplace(run_, step_);
  return *inspector_;
}

nlohmann::json InspectionService::hello() {
  const Inspector& model = inspector();
  return {{"protocol", kProtocol},
          {"run", run_.string()},
          {"step", model.step()},
          {"vocabulary", model.tokenizer().vocabulary()},
          {"tokenizer", model.tokenizer().hash()},
          {"sequence_length", model.config().data.sequence_length},
          {"longest_text", model.longest_text()}};
}

InspectedText InspectionService::captured_text(const Json& parameters) {
  const Parameters p(parameters, {"source", "step", "sample"});
  const Run run(run_);
  std::vector<int64_t> steps = run.capture_steps();
  if (steps.empty()) throw DataError(run_.string() + " holds no capture");
  const int64_t step = p.number("step", 0, kAnyNumber, steps.back());
  const std::vector<Capture> samples = run.captures(step);
  const int64_t sample = p.number("sample", 0, static_cast<int64_t>(samples.size()) - 1, 0);
  const Capture& capture = samples[static_cast<size_t>(sample)];
  InspectedText text{capture.domain + ", sample " + std::to_string(capture.sample), capture.tokens};
  text.asked = capture.asked;
  text.answers = answers_of(capture, inspector().config().data.task);
  return text;
}

InspectedText InspectionService::scored_text(const Json& parameters) {
  const Parameters p(parameters, {"source", "run", "task", "step", "item"});
  const ItemPlace place{parameters.contains("run") ? std::filesystem::path(p.text("run")) : run_, p.text("task"),
                        p.number("step", 0, kAnyNumber), p.number("item", 0, kAnyNumber)};
  return item_text(place, inspector().config(), inspector().tokenizer(), inspector().longest_text());
}

InspectedText InspectionService::text_from(const Json& parameters) {
  if (!parameters.is_object() || !parameters.contains("source") || !parameters["source"].is_string())
    throw UsageError("parameter \"source\" is missing: typed, file, captured, task or item");
  const std::string source = parameters["source"];
  const Tokenizer& tokenizer = inspector().tokenizer();
  const int64_t most = inspector().longest_text();
  if (source == "typed") {
    const Parameters p(parameters, {"source", "text"});
    return typed_text(tokenizer, p.text("text"), most);
  }
  if (source == "file") {
    const Parameters p(parameters, {"source", "path"});
    return text_of_file(tokenizer, p.text("path"), most);
  }
  if (source == "captured") return captured_text(parameters);
  if (source == "item") return scored_text(parameters);
  if (source != "task") throw UsageError("source is \"" + source.substr(0, 40) + "\", expected typed, file, captured, task or item");
  const Parameters p(parameters, {"source", "task", "length", "seed", "index"});
  TaskText task{p.text("task"), p.number("length", 1, kMostTextBytes, 256)};
  task.seed = static_cast<uint64_t>(p.number("seed", 0, kAnyNumber, 1)),
  task.index = static_cast<uint64_t>(p.number("index", 0, kAnyNumber, 0));
  return task_text(tokenizer, task, most);
}

nlohmann::json InspectionService::read_text(const Json& parameters) {
  Inspector& model = inspector();
  model.read(text_from(parameters));
  const Capture& capture = model.capture();
  Json maps = Json::array(), selections = Json::array(), answers = Json::array(), asked, heads = Json::array();
  for (const CapturedMap& map : capture.maps) maps.push_back({{"kind", to_string(map.kind)}, {"layer", map.layer}, {"shape", map.shape}});
  for (const auto& [layer, selection] : capture.selections)
    selections.push_back({{"layer", layer}, {"unit", unit_name(selection.unit)}, {"tokens", selection.tokens}});
  for (const KnownAnswer& a : model.text().answers)
    answers.push_back({{"query", a.query}, {"source", a.source}, {"size", a.size}, {"follows", a.follows}});
  if (model.text().asked) {
    asked = Json::array();
    for (const auto& [query, token] : *model.text().asked) asked.push_back({{"query", query}, {"token", token}});
  }
  for (const HeadScores& s : head_scores(capture))
    heads.push_back({{"layer", s.layer}, {"entropy", s.entropy}, {"distance", s.distance}, {"induction", s.induction}});
  return {{"title", model.text().title},
          {"step", model.step()},
          {"text", model.text_as_typed()},
          {"cut", model.text().cut},
          {"left_out", model.text().left_out},
          {"lost_answers", model.text().lost_answers},
          {"query", model.text().query},
          {"tokens", capture.tokens},
          {"pieces", capture.pieces},
          {"losses", capture.token_losses},
          {"answers", answers},
          {"asked", asked},
          {"maps", maps},
          {"selections", selections},
          {"layer_mixers", capture.layer_mixers},
          {"heads", heads}};
}

nlohmann::json InspectionService::map(const Json& parameters) {
  const Parameters p(parameters, {"kind", "layer", "head", "first", "rows"});
  const std::optional<MapKind> kind = parse_map_kind(p.text("kind"));
  if (!kind) throw UsageError("unknown kind of map \"" + p.text("kind").substr(0, 40) + "\"");
  const int64_t layer = p.number("layer", -1, kAnyNumber, -1);
  const CapturedMap* found = find_map(inspector().capture(), *kind, layer);
  if (!found) throw UsageError(layer_words(inspector().capture(), layer) + " has no map \"" + to_string(*kind) + "\"");
  const std::vector<int64_t>& shape = found->shape;
  // [H, T, …]: rows of one head, or of all; [N, …] of the model: rows.
  const bool by_head = !is_of_model(*kind);
  int64_t row = 1;
  for (size_t i = by_head ? 2 : 1; i < shape.size(); ++i) row *= shape[i];
  const int64_t rows = by_head ? shape[1] : shape[0], heads = by_head ? shape[0] : 1;
  const int64_t head = p.number("head", 0, heads - 1, heads == 1 ? std::optional<int64_t>(0) : std::nullopt);
  const int64_t first = p.number("first", 0, rows - 1, 0), count = p.number("rows", 1, rows - first, rows - first);
  if (count * row > kMostMapValues)
    throw UsageError(std::to_string(count) + " rows of " + std::to_string(row) + " values; an answer holds " +
                     std::to_string(kMostMapValues) + ", ask for fewer rows");
  const float* from = found->values.data() + (head * rows + first) * row;
  return {{"kind", to_string(*kind)},
          {"layer", found->layer},
          {"head", head},
          {"first", first},
          {"rows", count},
          {"columns", row},
          {"values", base64_of_floats({from, static_cast<size_t>(count * row)})}};
}

nlohmann::json InspectionService::predictions(const Json& parameters) {
  const Parameters p(parameters, {"query", "count"});
  return json_of(inspector().predictions(p.number("query", 0, kAnyNumber), p.number("count", 0, kMostPredictions, 10)));
}

nlohmann::json InspectionService::change(const Json& parameters) {
  const Parameters p(parameters, {"kind", "layer", "head", "query", "source", "asked", "count"});
  const std::string kind = p.text("kind");
  if (kind != "force" && kind != "mask") throw UsageError("kind is \"" + kind.substr(0, 40) + "\", expected force or mask");
  Counterfactual change;
  change.kind = kind == "force" ? Counterfactual::Kind::force : Counterfactual::Kind::mask;
  change.layer = p.number("layer", 0, kAnyNumber), change.head = p.number("head", 0, kAnyNumber);
  change.query = p.number("query", 0, kAnyNumber), change.source = p.number("source", -1, kAnyNumber);
  const CounterfactualResult result =
      inspector().change(change, p.number("asked", 0, kAnyNumber, change.query), p.number("count", 0, kMostPredictions, 10));
  return {{"losses", result.losses},
          {"changed_from", result.changed_from},
          {"mean_change", result.mean_change},
          {"mean_over", result.mean_over},
          {"loss", result.loss},
          {"before", json_of(result.before)},
          {"after", json_of(result.after)}};
}

}  // namespace saccade

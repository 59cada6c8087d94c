#include "ui/inspect/helper_text.h"

#include <cmath>

#include "analysis/inspection/base64.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

Selection selection_of(const Json& object) {
  const std::string unit = object.at("unit");
  return {unit == "chunk"   ? Selection::Unit::chunk
          : unit == "split" ? Selection::Unit::split
                            : Selection::Unit::element,
          object.at("tokens").get<int64_t>()};
}

/// All but the values of the maps.
void take_text(const Json& text, LoadedCaptures& loaded, Capture& sample) {
  loaded.step = text.at("step");
  loaded.cut = text.at("cut");
  loaded.left_out = text.at("left_out"), loaded.lost_answers = text.value("lost_answers", int64_t{0}), loaded.query = text.at("query");
  std::vector<KnownAnswer>& answers = loaded.answers.emplace_back();
  for (const Json& answer : text.at("answers"))
    answers.push_back({answer.at("query"), answer.at("source"), answer.at("size"), answer.at("follows")});
  if (const Json asked = text.value("asked", Json()); asked.is_array()) {  // a helper of an earlier version does not say it
    sample.asked.emplace();
    for (const Json& query : asked) (*sample.asked)[query.at("query").get<int64_t>()] = query.at("token");
  }
  sample.at.step = loaded.step;
  sample.domain = text.at("title");
  sample.tokens = text.at("tokens").get<std::vector<int32_t>>();
  sample.pieces = text.at("pieces").get<std::vector<std::string>>();
  sample.token_losses = text.at("losses").get<std::vector<float>>();
  sample.layer_mixers = text.at("layer_mixers").get<std::vector<std::string>>();
  for (const Json& selection : text.at("selections")) sample.selections[selection.at("layer").get<int64_t>()] = selection_of(selection);
  for (const Json& map : text.at("maps")) {
    const std::optional<MapKind> kind = parse_map_kind(map.at("kind"));
    if (!kind) continue;
    sample.maps.push_back({*kind, map.at("layer").get<int64_t>(), map.at("shape").get<std::vector<int64_t>>(), {}});
    if (sample.maps.back().shape.empty()) throw DataError("a map without a shape");
  }
}

ShownPrediction prediction_of(const Json& p) {
  const std::string piece = p.at("piece");
  return {QString::fromStdString(piece), p.at("logit"), p.at("probability")};
}

ShownPredictions predictions_of(const Json& object) {
  ShownPredictions shown;
  for (const Json& p : object.at("top")) shown.top.push_back(prediction_of(p));
  if (!object.at("target").is_null()) shown.target = prediction_of(object.at("target"));
  if (const Json answer = object.value("answer", Json()); !answer.is_null()) shown.answer = prediction_of(answer);
  return shown;
}

/// A helper of an earlier version, on another machine, says neither what the query lost before nor how many queries the mean is over: there
/// every query is asked for what follows.
ShownChange change_of(const Counterfactual& change, int query, const Json& answer) {
  ShownChange shown{change,
                    answer.at("losses").get<std::vector<double>>(),
                    answer.at("changed_from"),
                    answer.at("mean_change"),
                    0,
                    std::nan(""),
                    predictions_of(answer.at("before")),
                    predictions_of(answer.at("after"))};
  const bool earlier = !answer.contains("mean_over");
  shown.mean_over = earlier ? static_cast<int>(shown.losses.size()) - shown.changed_from : answer.at("mean_over").get<int>();
  if (earlier && static_cast<size_t>(query) < shown.losses.size() && shown.before.target)
    shown.loss = -std::log(shown.before.target->probability);
  else if (const Json loss = answer.value("loss", Json()); loss.is_number())
    shown.loss = loss;
  return shown;
}

}  // namespace

/// A text that is being read: filled in worker threads, one answer after another.
struct HelperText::Reading {
  std::shared_ptr<LoadedCaptures> loaded = std::make_shared<LoadedCaptures>();
  Capture sample;
  size_t parts_left = 0;  ///< answers that are still to come
};

void HelperText::complete(Reading& reading) {
  reading.loaded->heads = {head_lists(reading.sample)};
  reading.loaded->samples = {std::move(reading.sample)};
}

HelperText::HelperText(QObject* parent) : QObject(parent), client_(new InspectionClient(this)) {}

void HelperText::read(const QString& run, qint64 checkpoint, const Json& source, bool wanted) {
  client_->open(run, checkpoint);
  client_->forget();
  auto reading = std::make_shared<Reading>();
  reading->loaded->directory = run;
  reading->loaded->source = source.dump(-1, ' ', false, Json::error_handler_t::replace);
  Json asked = source;
  if (asked.value("run", std::string()) == run.toStdString()) asked.erase("run");  // it may have another path on its own machine
  if (wanted) return client_->ask("text", asked, digestText(reading));
  client_->ask("text", asked, [](const Json&) { return std::function<void()>(); });
}

InspectionClient::Digest HelperText::digestText(const std::shared_ptr<Reading>& reading) {
  return [this, reading](const Json& text) -> std::function<void()> {
    take_text(text, *reading->loaded, reading->sample);
    return [this, reading] { askMaps(reading); };
  };
}

/// Head by head, each an answer of its own; the last one completes the text.
void HelperText::askMaps(const std::shared_ptr<Reading>& reading) {
  struct Part {
    size_t map;
    int64_t head;
  };
  std::vector<Part> parts;
  for (size_t m = 0; m < reading->sample.maps.size(); ++m) {
    const CapturedMap& map = reading->sample.maps[m];
    for (int64_t head = 0; head < (is_of_model(map.kind) ? 1 : map.shape.front()); ++head) parts.push_back({m, head});
  }
  reading->parts_left = parts.size();
  if (parts.empty()) complete(*reading);
  if (parts.empty()) Q_EMIT loaded(reading->loaded);
  for (const Part& part : parts) {
    const CapturedMap& map = reading->sample.maps[part.map];
    const Json parameters{{"kind", to_string(map.kind)}, {"layer", map.layer}, {"head", part.head}};
    client_->ask("map", parameters, [this, reading, part](const Json& answer) -> std::function<void()> {
      const std::vector<float> values = floats_of_base64(answer.at("values").get_ref<const std::string&>());
      std::vector<float>& all = reading->sample.maps[part.map].values;
      all.insert(all.end(), values.begin(), values.end());
      if (--reading->parts_left > 0) return {};
      complete(*reading);
      return [this, reading] { Q_EMIT loaded(reading->loaded); };
    });
  }
}

void HelperText::askPredictions(int query) {
  client_->ask("predictions", {{"query", query}}, [this, query](const Json& answer) -> std::function<void()> {
    return [this, query, shown = predictions_of(answer)] { Q_EMIT predicted(query, shown); };
  });
}

void HelperText::askChange(const Counterfactual& change, int query) {
  const char* kind = change.kind == Counterfactual::Kind::force ? "force" : "mask";
  const Json parameters{{"kind", kind},          {"layer", change.layer},   {"head", change.head},
                        {"query", change.query}, {"source", change.source}, {"asked", query}};
  client_->ask("change", parameters, [this, change, query](const Json& answer) -> std::function<void()> {
    const ShownChange shown = change_of(change, query, answer);
    return [this, shown] { Q_EMIT changed(shown); };
  });
}

}  // namespace saccade::ui

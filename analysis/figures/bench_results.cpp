#include "analysis/figures/bench_results.h"

#include <algorithm>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/json.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using Point = BenchedModel::Point;

/// A count of tokens or sequences. Throws DataError for other numbers.
int64_t count_of(const Json& entry, const char* key) {
  const Json& value = entry.at(key);
  constexpr double kMost = 1e15;
  if (!value.is_number_integer() || !(value.get<double>() >= 1 && value.get<double>() <= kMost))
    throw DataError("\"" + std::string(key) + "\" is " + value.dump() + "; expected a whole number from 1 to 1e15");
  return value;
}

BenchedModel& model_of(std::vector<BenchedModel>& models, const Json& entry) {
  const std::string name = entry.at("preset"), gpu = entry.value("gpu", std::string());
  const std::string device = gpu.empty() ? entry.at("processor").get<std::string>() : gpu;
  for (BenchedModel& model : models)
    if (model.name == name && model.device == device) return model;
  models.push_back({name, entry.value("title", name), device, {}});
  return models.back();
}

/// In the place of an earlier measurement of the same.
void put(BenchedModel& model, Point point) {
  for (Point& there : model.points)
    if (there.quantity == point.quantity && there.length == point.length && there.batch == point.batch) {
      there = std::move(point);
      return;
    }
  model.points.push_back(std::move(point));
}

/// Seconds.
Point time_point(const std::string& quantity, int64_t length, const Json& timing) {
  const auto seconds = [&](const char* key) { return timing.at(key).get<double>() / 1e3; };
  return {quantity, length, 1, seconds("ms"), seconds("fastest_ms"), seconds("slowest_ms"), {}};
}

Point refused(const std::string& quantity, int64_t length, int64_t batch, const Json& entry) {
  return {quantity, length, batch, 0, 0, 0, entry.at("refusal")};
}

void add_step(BenchedModel& model, const Json& step) {
  const int64_t length = count_of(step, "sequence_length");
  if (step.contains("refusal")) return put(model, refused("training-speed", length, 1, step));
  const double tokens = step.at("batch_tokens").get<double>() * 1e3, slowest = step.at("slowest_ms"), fastest = step.at("fastest_ms");
  put(model, {"training-speed", length, 1, step.at("tokens_per_s"), tokens / slowest, tokens / fastest, {}});
}

void add_batch(BenchedModel& model, int64_t length, const Json& entry) {
  const int64_t batch = count_of(entry, "batch");
  if (entry.contains("refusal")) {
    for (const char* quantity : {"decoding-speed", "whole-speed"}) put(model, refused(quantity, length, batch, entry));
    return;
  }
  const Json& step = entry.at("step");
  const double sequences = static_cast<double>(batch) * 1e3, whole = entry.at("whole_tokens_per_s");
  put(model, {"decoding-speed",
              length,
              batch,
              entry.at("tokens_per_s"),
              sequences / step.at("slowest_ms").get<double>(),
              sequences / step.at("fastest_ms").get<double>(),
              {}});
  put(model, {"whole-speed", length, batch, whole, whole, whole, {}});
}

void add_prompt(BenchedModel& model, const Json& point) {
  const int64_t length = count_of(point, "length");
  if (point.contains("refusal")) {
    for (const char* quantity : {"first-token", "token-time", "state-bytes"}) put(model, refused(quantity, length, 1, point));
  } else {
    put(model, time_point("first-token", length, point.at("prompt")));
    put(model, time_point("token-time", length, point.at("token")));
    const double bytes = point.at("state_bytes");
    put(model, {"state-bytes", length, 1, bytes, bytes, bytes, {}});
  }
  for (const Json& batch : point.at("batches")) add_batch(model, length, batch);
}

Json read_bench(const std::string& text, const std::string& origin) {
  const Json object = parse_json_or_discard(text);
  if (!object.is_object() || !object.contains("saccade_bench"))
    throw DataError(origin + " is no result of saccade bench (saccade bench --out FILE makes one)");
  return object;
}

void add_result(std::vector<BenchedModel>& models, const Json& result, const std::string& origin) try {
  for (const Json& step : result.value("steps", Json::array())) add_step(model_of(models, step), step);
  for (const Json& model : result.value("decoding", Json::array()))
    for (const Json& point : model.at("points")) add_prompt(model_of(models, model), point);
} catch (const Json::exception& error) {
  throw DataError(origin + " is no result of saccade bench: " + error.what());
} catch (const DataError& error) {
  throw DataError(origin + ": " + error.what());
}

void sort_points(std::vector<BenchedModel>& models) {
  for (BenchedModel& model : models)
    std::stable_sort(model.points.begin(), model.points.end(),
                     [](const Point& a, const Point& b) { return std::pair(a.length, a.batch) < std::pair(b.length, b.batch); });
}

/// When a result was measured; empty where it does not say.
std::string made(const Json& result) {
  const auto found = result.find("made");
  return found != result.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<fs::path> files_of(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".json") inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace

const std::vector<std::string>& bench_quantities() {
  static const std::vector<std::string> quantities{"training-speed", "first-token",    "token-time",
                                                   "state-bytes",    "decoding-speed", "whole-speed"};
  return quantities;
}

std::vector<BenchedModel> parse_bench(const std::string& text, const std::string& origin) {
  std::vector<BenchedModel> models;
  add_result(models, read_bench(text, origin), origin);
  sort_points(models);
  return models;
}

std::vector<BenchedModel> load_bench(const std::vector<fs::path>& paths) {
  std::vector<std::pair<fs::path, Json>> results;
  for (const fs::path& file : files_of(paths)) results.emplace_back(file, read_bench(read_text(file), file.string()));
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return made(a.second) < made(b.second); });
  std::vector<BenchedModel> models;
  for (const auto& [file, result] : results) add_result(models, result, file.string());
  sort_points(models);
  return models;
}

}  // namespace saccade

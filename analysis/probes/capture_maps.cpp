#include "analysis/probes/capture_maps.h"

#include <algorithm>
#include <cmath>

#include "kernels/engine/error.h"

namespace saccade {

const CapturedMap* find_map(const Capture& capture, MapKind kind, int64_t layer) {
  if (is_of_model(kind)) layer = -1;
  const auto at =
      std::find_if(capture.maps.begin(), capture.maps.end(), [&](const CapturedMap& m) { return m.kind == kind && m.layer == layer; });
  return at == capture.maps.end() ? nullptr : &*at;
}

namespace {

/// `stored`: the values may be elsewhere.
const CapturedMap& checked(const CapturedMap& map, int rank, bool stored = false) {
  int64_t size = 1;
  for (const int64_t dim : map.shape) size *= dim;
  if (stored && map.shape.size() == 3 && rank == 3 && map.values.empty()) return map;
  if (static_cast<int>(map.shape.size()) != rank || size != static_cast<int64_t>(map.values.size()))
    throw DataError(std::string("the captured map \"") + to_string(map.kind) + "\" has " + std::to_string(map.shape.size()) +
                    " dimensions and " + std::to_string(map.values.size()) + " values, expected " + std::to_string(rank) +
                    " dimensions and " + std::to_string(size));
  return map;
}

/// Chosen candidates among `count` values; negative means none.
std::vector<int64_t> chosen_among(const float* values, int64_t count) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i)
    if (values[i] >= 0) chosen.push_back(std::lround(values[i]));
  return chosen;
}

}  // namespace

const CapturedMap& require_map(const Capture& capture, MapKind kind, int64_t layer, int rank) {
  if (const CapturedMap* map = find_map(capture, kind, layer)) return checked(*map, rank, capture.stored != nullptr);
  std::string layers;  // not all may have one: Based's convolutions read from fixed places
  for (const CapturedMap& m : capture.maps)
    if (m.kind == kind) layers += (layers.empty() ? "" : ", ") + std::to_string(m.layer);
  throw UsageError(std::string("the capture has no map \"") + to_string(kind) + "\"" +
                   (layers.empty() ? std::string() : " of " + layer_words(capture, layer) + "; layers that have one: " + layers));
}

std::vector<float> rows_of(const Capture& capture, const CapturedMap& map, int64_t head, int64_t first, int64_t count) {
  if (map.values.empty() && capture.stored) return capture.stored->rows(map, head, first, count);
  const float* from = checked(map, 3).values.data() + (head * map.shape[1] + first) * map.shape[2];
  return {from, from + count * map.shape[2]};
}

void require_head(const CapturedMap& map, int64_t head) {
  if (head < 0 || head >= map.shape.front())
    throw UsageError("head " + std::to_string(head) + " is out of range: layer " + std::to_string(map.layer) + " has heads 0 to " +
                     std::to_string(map.shape.front() - 1));
}

std::vector<int64_t> selected_at(const Capture& capture, int64_t layer, int64_t head, int64_t query) {
  const CapturedMap* selected = find_map(capture, MapKind::selected, layer);
  if (!selected) return {};
  checked(*selected, selected->shape.size() == 3 ? 3 : 2);
  const int64_t heads = selected->shape[0], queries = selected->shape[1], each = selected->shape.size() == 3 ? selected->shape[2] : 1;
  if (head >= heads || query >= queries) return {};
  return chosen_among(selected->values.data() + (head * queries + query) * each, each);
}

std::vector<int64_t> chosen_splits(const Capture& capture, int64_t split) {
  const CapturedMap* chosen = find_map(capture, MapKind::chosen, -1);
  if (!chosen) return {};
  checked(*chosen, 2);
  if (split >= chosen->shape[0]) return {};
  return chosen_among(chosen->values.data() + split * chosen->shape[1], chosen->shape[1]);
}

std::string layer_words(const Capture& capture, int64_t layer) {
  const auto index = static_cast<size_t>(layer);
  return "layer " + std::to_string(layer) +
         (layer >= 0 && index < capture.layer_mixers.size() ? " (" + capture.layer_mixers[index] + ")" : std::string());
}

std::vector<int64_t> layers_without_reads(const Capture& capture) {
  auto layers = static_cast<int64_t>(capture.layer_mixers.size());
  for (const CapturedMap& map : capture.maps) layers = std::max(layers, map.layer + 1);
  std::vector<int64_t> without;
  for (int64_t layer = 0; layer < layers; ++layer)
    if (!find_map(capture, MapKind::weights, layer)) without.push_back(layer);
  return without;
}

const Selection* find_selection(const Capture& capture, int64_t layer) {
  auto found = capture.selections.find(layer);
  if (found == capture.selections.end()) found = capture.selections.find(-1);
  return found == capture.selections.end() ? nullptr : &found->second;
}

bool chooses_parts(const Capture& capture, int64_t layer) {
  const Selection* selection = find_selection(capture, layer);
  return selection && selection->unit != Selection::Unit::element;
}

int64_t candidate_size(const Capture& capture, int64_t layer) {
  return chooses_parts(capture, layer) ? find_selection(capture, layer)->tokens : 0;
}

const CapturedMap* find_scores(const Capture& capture, int64_t layer) {
  return chooses_parts(capture, layer) ? find_map(capture, main_map(capture, layer), layer) : nullptr;
}

MapKind main_map(const Capture& capture, int64_t layer) {
  if (!chooses_parts(capture, layer)) return MapKind::weights;
  return find_selection(capture, layer)->unit == Selection::Unit::chunk ? MapKind::score : MapKind::maxsim;
}

}  // namespace saccade

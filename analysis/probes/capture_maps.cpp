#include "analysis/probes/capture_maps.h"

#include <algorithm>
#include <cmath>

#include "kernels/error.h"

namespace saccade {

const CapturedMap* find_map(const Capture& capture, const std::string& name, int64_t layer) {
  const auto at =
      std::find_if(capture.maps.begin(), capture.maps.end(), [&](const CapturedMap& m) { return m.name == name && m.layer == layer; });
  return at == capture.maps.end() ? nullptr : &*at;
}

namespace {

const CapturedMap& checked(const CapturedMap& map, int rank) {
  int64_t size = 1;
  for (const int64_t dim : map.shape) size *= dim;
  if (static_cast<int>(map.shape.size()) != rank || size != static_cast<int64_t>(map.values.size()))
    throw DataError("the captured map \"" + map.name + "\" has " + std::to_string(map.shape.size()) + " dimensions and " +
                    std::to_string(map.values.size()) + " values, expected " + std::to_string(rank) + " dimensions and " +
                    std::to_string(size));
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

const CapturedMap& require_map(const Capture& capture, const std::string& name, int64_t layer, int rank) {
  if (const CapturedMap* map = find_map(capture, name, layer)) return checked(*map, rank);
  const bool known = std::any_of(capture.maps.begin(), capture.maps.end(), [&](const CapturedMap& m) { return m.name == name; });
  throw UsageError(known ? "the capture has no map \"" + name + "\" of layer " + std::to_string(layer)
                         : "the capture has no map \"" + name + "\"");
}

void require_head(const CapturedMap& map, int64_t head) {
  if (head < 0 || head >= map.shape.front())
    throw UsageError("head " + std::to_string(head) + " is out of range: layer " + std::to_string(map.layer) + " has heads 0 to " +
                     std::to_string(map.shape.front() - 1));
}

std::vector<int64_t> selected_at(const Capture& capture, int64_t layer, int64_t head, int64_t query) {
  const CapturedMap* selected = find_map(capture, "selected", layer);
  if (!selected) return {};
  checked(*selected, selected->shape.size() == 3 ? 3 : 2);
  const int64_t heads = selected->shape[0], queries = selected->shape[1], each = selected->shape.size() == 3 ? selected->shape[2] : 1;
  if (head >= heads || query >= queries) return {};
  return chosen_among(selected->values.data() + (head * queries + query) * each, each);
}

std::vector<int64_t> chosen_splits(const Capture& capture, int64_t split) {
  const CapturedMap* chosen = find_map(capture, "chosen", -1);
  if (!chosen) return {};
  checked(*chosen, 2);
  if (split >= chosen->shape[0]) return {};
  return chosen_among(chosen->values.data() + split * chosen->shape[1], chosen->shape[1]);
}

int64_t candidate_size(const Capture& capture, int64_t layer) {
  const CapturedMap *score = find_map(capture, "score", layer), *maxsim = find_map(capture, "maxsim", -1);
  if (!score && !maxsim) return 0;
  if (const CapturedMap* size = find_map(capture, kCandidateSize, -1)) return std::lround(checked(*size, 1).values.front());
  const int64_t length = static_cast<int64_t>(capture.tokens.size());
  if (maxsim) return (length + maxsim->shape.front() - 1) / maxsim->shape.front();
  const int64_t queries = checked(*score, 3).shape[1], chunks = score->shape[2];
  for (int64_t t = 0; t < queries; ++t)  // chunk 0 is complete, and so a candidate, from the first query behind it
    if (std::isfinite(score->values[static_cast<size_t>(t * chunks)])) return t;
  return length;
}

}  // namespace saccade

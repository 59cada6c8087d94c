#include "analysis/inspection/known_answers.h"

#include <algorithm>
#include <cmath>

#include "analysis/probes/capture_maps.h"

namespace saccade {

Figure with_answers(Figure figure, const Capture& capture, const MapPlace& place, const std::vector<KnownAnswer>& answers) {
  if (!figure.map) return figure;
  HeatMap& map = *figure.map;
  const int64_t rows = map.cells[0] > 0 ? map.cells[0] : map.rows, columns = map.cells[1] > 0 ? map.cells[1] : map.columns;
  const int64_t size = std::max<int64_t>(1, candidate_size(capture, place.layer));
  const bool by_split = place.kind == MapKind::maxsim, by_part = by_split || place.kind == MapKind::score;
  for (const KnownAnswer& answer : answers)
    for (int64_t i = 0; i < answer.size; ++i) {
      const int64_t query = answer.query + i, source = answer.source + i;
      const std::array<int64_t, 2> cell{by_split ? query / size : query, by_part ? source / size : source};
      const bool there = cell[0] >= 0 && cell[1] >= 0 && cell[0] < rows && cell[1] < columns;
      if (there && std::find(map.known.begin(), map.known.end(), cell) == map.known.end()) map.known.push_back(cell);
    }
  return figure;
}

std::optional<AnswerRead> answer_read(const std::vector<KnownAnswer>& answers, int64_t query, const std::vector<double>& weights) {
  for (const KnownAnswer& answer : answers) {
    if (query < answer.query || query >= answer.query + answer.size) continue;
    const int64_t source = answer.source + query - answer.query;
    if (source < 0 || source >= static_cast<int64_t>(weights.size())) continue;
    const double weight = weights[static_cast<size_t>(source)];
    const auto more = std::count_if(weights.begin(), weights.end(), [&](double w) { return std::abs(w) > std::abs(weight); });
    return AnswerRead{source, weight, static_cast<int64_t>(more) + 1};
  }
  return {};
}

}  // namespace saccade

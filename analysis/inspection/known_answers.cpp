#include "analysis/inspection/known_answers.h"

#include <algorithm>

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

}  // namespace saccade

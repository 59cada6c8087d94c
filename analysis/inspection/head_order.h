#pragma once
#include "analysis/figures/figure.h"
#include "analysis/inspection/head_scores.h"

namespace saccade {

enum class HeadMeasure { entropy, distance, induction };
enum class HeadOrder {
  place,      ///< by layer and head
  value,      ///< the greatest first
  similarity  ///< heads that are alike beside each other: average linkage of entropy, ln(1 + distance) and induction, each over its
              ///< deviation
};

struct HeadPlace {
  int64_t layer = 0, head = 0;
  bool operator==(const HeadPlace&) const = default;
};

/// All heads of the layers, in an order. Those without a value come last.
std::vector<HeadPlace> order_of_heads(const std::vector<HeadScores>& scores, HeadMeasure measure, HeadOrder order);

/// Heads in the order that order_of_heads gave, as a map. By place: layers × heads, rows up to the last layer of `layer_mixers` or of the
/// scores. Otherwise the heads in their order, row after row, as wide as the layer with most heads. Cells without a head are empty.
Figure head_scores_figure(const std::vector<HeadScores>& scores, const std::vector<HeadPlace>& heads, HeadMeasure measure, HeadOrder order,
                          const std::vector<std::string>& layer_mixers);
/// The head of a cell of that figure; layer −1: none.
HeadPlace head_at(const std::vector<HeadPlace>& heads, const HeatMap& map, HeadOrder order, int64_t row, int64_t column);
/// Row and column of a head; −1, −1: not there.
std::array<int64_t, 2> cell_of_head(const std::vector<HeadPlace>& heads, const HeatMap& map, HeadOrder order, const HeadPlace& head);

}  // namespace saccade

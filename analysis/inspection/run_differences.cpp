#include "analysis/inspection/run_differences.h"

#include <algorithm>
#include <cmath>

#include "analysis/inspection/large_map.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

void require_same(const Capture& a, const Capture& b) {
  if (!same_tokens(a, b)) throw UsageError("the runs have read other tokens: give both a typed text, a file or a task");
}

}  // namespace

bool same_tokens(const Capture& a, const Capture& b) { return a.tokens == b.tokens && a.pieces == b.pieces; }

Figure difference_figure(const HeadOf& a, const HeadOf& b) {
  require_same(a.capture, b.capture);
  if (cells_of(b.capture, {MapKind::weights, b.layer, b.head}) > kMostCells)
    throw UsageError("maps of more than 2048 × 2048 are not subtracted");
  const Figure of_a = capture_figure(a.capture, MapKind::weights, a.layer, a.head);
  Figure figure = capture_figure(b.capture, MapKind::weights, b.layer, b.head);
  if (of_a.map->rows != figure.map->rows || of_a.map->columns != figure.map->columns) throw UsageError("the maps have other sizes");
  double most = 0;
  for (size_t i = 0; i < figure.map->values.size(); ++i) {
    float& value = figure.map->values[i];
    const float other = of_a.map->values[i];
    if (std::isnan(value) && std::isnan(other)) continue;  // in the future of the query
    value = (std::isnan(value) ? 0 : value) - (std::isnan(other) ? 0 : other);
    most = std::max(most, static_cast<double>(std::abs(value)));
  }
  figure.map->range = {most > 0 ? -most : -1, most > 0 ? most : 1};
  figure.map->diverging = true;
  figure.map->value_title = "difference of weights";
  figure.id = "difference-" + figure.id;
  figure.title = "Difference of weights";
  return figure;
}

std::vector<LossDifference> greatest_loss_differences(const std::vector<const Capture*>& captures, int64_t count) {
  std::vector<LossDifference> all;
  if (captures.empty()) return all;
  size_t queries = captures.front()->token_losses.size();
  for (const Capture* capture : captures) {
    require_same(*captures.front(), *capture);
    queries = std::min(queries, capture->token_losses.size());
  }
  for (size_t t = 0; t < queries; ++t) {
    LossDifference difference{static_cast<int64_t>(t), {}, 0};
    for (const Capture* capture : captures) difference.losses.push_back(static_cast<double>(capture->token_losses[t]));
    const auto [least, most] = std::minmax_element(difference.losses.begin(), difference.losses.end());
    difference.spread = *most - *least;
    if (std::isfinite(difference.spread)) all.push_back(std::move(difference));
  }
  std::stable_sort(all.begin(), all.end(), [](const LossDifference& a, const LossDifference& b) { return a.spread > b.spread; });
  if (static_cast<int64_t>(all.size()) > count) all.resize(static_cast<size_t>(count));
  return all;
}

}  // namespace saccade

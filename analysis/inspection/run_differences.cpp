#include "analysis/inspection/run_differences.h"

#include <algorithm>
#include <cmath>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

void require_same(const Capture& a, const Capture& b) {
  if (!same_tokens(a, b)) throw UsageError("the runs have read other tokens: give both a typed text, a file or a task");
}

}  // namespace

bool same_tokens(const Capture& a, const Capture& b) { return a.tokens == b.tokens && a.pieces == b.pieces; }

Figure empty_difference_figure(const HeadOf& a, const HeadOf& b) {
  require_same(a.capture, b.capture);
  const Figure of_a = empty_capture_figure(a.capture, {MapKind::weights, a.layer, a.head});
  Figure figure = empty_capture_figure(b.capture, {MapKind::weights, b.layer, b.head});
  if (of_a.map->rows != figure.map->rows || of_a.map->columns != figure.map->columns) throw UsageError("the maps have other sizes");
  figure.map->value_title = "difference of weights";
  figure.id = "difference-" + figure.id;
  figure.title = "Difference of weights";
  return figure;
}

std::vector<float> difference_rows(const HeadOf& a, const HeadOf& b, int64_t first, int64_t count) {
  const std::vector<float> of_a = capture_rows(a.capture, {MapKind::weights, a.layer, a.head}, first, count);
  std::vector<float> values = capture_rows(b.capture, {MapKind::weights, b.layer, b.head}, first, count);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && std::isnan(of_a[i])) continue;  // in the future of the query
    values[i] = (std::isnan(values[i]) ? 0 : values[i]) - (std::isnan(of_a[i]) ? 0 : of_a[i]);
  }
  return values;
}

void set_difference_range(HeatMap& map, std::array<double, 2> range) {
  const double most = std::max(std::abs(range[0]), std::abs(range[1]));
  map.range = {most > 0 ? -most : -1, most > 0 ? most : 1};
  map.diverging = true;
}

Figure difference_figure(const HeadOf& a, const HeadOf& b) {
  Figure figure = empty_difference_figure(a, b);
  figure.map->values = difference_rows(a, b, 0, figure.map->rows);
  double most = 0;
  for (const float value : figure.map->values)
    if (std::isfinite(value)) most = std::max(most, static_cast<double>(std::abs(value)));
  set_difference_range(*figure.map, {-most, most});
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

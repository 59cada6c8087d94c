#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// Whether two captures are of the same tokens, so that queries can be compared.
bool same_tokens(const Capture& a, const Capture& b);

/// Read weights of one head of `b` minus those of one of `a`, query by source position. Throws UsageError where the tokens differ or one
/// has no such weights.
struct HeadOf {
  const Capture& capture;
  int64_t layer = 0, head = 0;
};
Figure difference_figure(const HeadOf& a, const HeadOf& b);
/// The same in parts, for maps that are too large to be drawn cell by cell: the figure without values, rows of its values, and the range
/// of colours for the least and greatest of them, as far on both sides of zero.
Figure empty_difference_figure(const HeadOf& a, const HeadOf& b);
std::vector<float> difference_rows(const HeadOf& a, const HeadOf& b, int64_t first, int64_t count);
void set_difference_range(HeatMap& map, std::array<double, 2> range);

struct LossDifference {
  int64_t query = 0;
  std::vector<double> losses;  ///< nats, of every capture
  double spread = 0;           ///< the greatest minus the least
};
/// The queries whose losses differ most between captures of the same tokens, the greatest spread first, ties to the earlier; at most
/// `count`. Queries that one of them has no loss of are left out. Throws UsageError where the tokens differ.
std::vector<LossDifference> greatest_loss_differences(const std::vector<const Capture*>& captures, int64_t count);

}  // namespace saccade

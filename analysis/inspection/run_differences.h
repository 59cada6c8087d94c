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

struct LossDifference {
  int64_t query = 0;
  std::vector<double> losses;  ///< nats, of every capture
  double spread = 0;           ///< the greatest minus the least
};
/// The queries whose losses differ most between captures of the same tokens, the greatest spread first, ties to the earlier; at most
/// `count`. Queries that one of them has no loss of are left out. Throws UsageError where the tokens differ.
std::vector<LossDifference> greatest_loss_differences(const std::vector<const Capture*>& captures, int64_t count);

}  // namespace saccade

#include "kernels/ops/avey/layout.h"

namespace saccade::avey {
namespace {

double triangle(double n) { return n * (n + 1) / 2; }

}  // namespace

double ContextLayout::causal_pairs(bool own_queries) const {
  double pairs = 0;
  for (int64_t i = 0; i < splits(); ++i) {
    const double before = static_cast<double>(padding ? padding_before(i) : 0);
    const double chosen = static_cast<double>(split * chosen_count(i)), own = static_cast<double>(own_count(i));
    pairs += triangle(before + chosen + own) - triangle(own_queries ? before + chosen : before);
  }
  return static_cast<double>(batch) * pairs + (own_queries ? 0 : triangle(static_cast<double>(pad_rows())));
}

ContextRows context_rows(const ContextLayout& layout, int64_t b, int64_t i) {
  const int64_t before = layout.padding_before(i);
  return {{{{0, layout.padding ? before : 0},
            {layout.chosen_row(b, i), layout.split * layout.chosen_count(i)},
            {layout.own_row(b, i), layout.own_count(i)}}},
          layout.offset + (layout.padding ? 0 : before)};
}

ContextRows padding_context(const ContextLayout& layout) { return {{{{0, layout.pad_rows()}, {0, 0}, {0, 0}}}, 0}; }

}  // namespace saccade::avey

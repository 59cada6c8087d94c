#include "analysis/runs/thinning.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace saccade {
namespace {

constexpr std::array kColumns{&Series::step, &Series::tokens, &Series::flops, &Series::seconds, &Series::value};

/// Of points [begin, end), two or more: where the least and the greatest value stand, in order.
std::pair<size_t, size_t> extremes(const Column& values, size_t begin, size_t end) {
  size_t low = end, high = end;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(values[i])) continue;
    if (low == end || values[i] < values[low]) low = i;
    if (high == end || values[i] > values[high]) high = i;
  }
  if (low == end) return {begin, end - 1};
  if (low == high) high = low + 1 < end ? low + 1 : low - 1;
  return std::minmax(low, high);
}

void move_point(Series& series, size_t to, size_t from) {
  for (const auto column : kColumns) {
    std::vector<double>& values = (series.*column).edit();
    values[to] = values[from];
  }
}

void cut_to(Series& series, size_t points) {
  for (const auto column : kColumns) (series.*column).resize(points);
}

/// Adds the mean of points [begin, end); values without what is not finite.
void add_mean(Series& means, const Series& series, size_t begin, size_t end) {
  for (const auto column : kColumns) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = begin; i < end; ++i)
      if (const double v = (series.*column)[i]; std::isfinite(v)) sum += v, ++count;
    (means.*column).push_back(count > 0 ? sum / static_cast<double>(count) : std::nan(""));
  }
}

}  // namespace

void Thinning::added(Series& series) {
  if (most_ == 0) return;
  const size_t points = series.value.size();
  if (stretch_ == 1) {
    if (points >= std::max<size_t>(8, most_ / 4 * 4)) halve(series);
    return;
  }
  if (points - done_ < stretch_) return;
  const auto [first, second] = extremes(series.value, done_, points);
  add_mean(means_, series, done_, points);
  move_point(series, done_, first);
  move_point(series, done_ + 1, second);
  cut_to(series, done_ += 2);
  if (done_ >= std::max<size_t>(8, most_ / 4 * 4)) halve(series);
}

/// Four points, of four steps or of two stretches, become two.
void Thinning::halve(Series& series) {
  const size_t points = series.value.size() / 4 * 4;
  Series means{means_.name, means_.unit, {}, {}, {}, {}, {}};
  for (size_t i = 0; i < points; i += 4) {
    if (stretch_ == 1)
      add_mean(means, series, i, i + 4);
    else
      add_mean(means, means_, i / 2, i / 2 + 2);
    const auto [first, second] = extremes(series.value, i, i + 4);
    move_point(series, i / 2, first);
    move_point(series, i / 2 + 1, second);
  }
  cut_to(series, points / 2);
  means_ = std::move(means);
  stretch_ = stretch_ == 1 ? 4 : 2 * stretch_;
  done_ = points / 2;
}

void Thinning::cut(Series& series) {
  done_ = std::min(done_, series.value.size() / 2 * 2);
  if (stretch_ > 1) cut_to(means_, done_ / 2);
}

}  // namespace saccade

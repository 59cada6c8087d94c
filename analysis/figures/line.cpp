#include "analysis/figures/line.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/comparison/statistics.h"

namespace saccade {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const Column& positions(const Series& series, XAxis x) {
  switch (x) {
    case XAxis::tokens: return series.tokens;
    case XAxis::flops: return series.flops;
    case XAxis::seconds: return series.seconds;
    case XAxis::step: break;
  }
  return series.step;
}

/// Every point counts by the stretch before it, the first by the one behind it; without what is missing before the start.
Line exponential(const Line& line, double width) {
  std::vector<double> x, y, mean;
  for (size_t i = 0; i < line.y.size(); ++i)
    if (std::isfinite(line.y[i])) x.push_back(line.x[i]), y.push_back(line.y[i]);
  double sum = 0, weight = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double stretch = i > 0 ? x[i] - x[i - 1] : x.size() > 1 ? x[1] - x[0] : 0;
    const double keep = stretch > 0 ? std::exp(-stretch / width) : 0;
    sum = keep * sum + (1 - keep) * y[i];
    weight = keep * weight + (1 - keep);
    mean.push_back(sum / weight);
  }
  return {std::move(x), std::move(mean)};
}

Line windowed(const Line& line, double width) {
  std::vector<double> x, sums{0}, all, y;
  for (size_t i = 0; i < line.y.size(); ++i)
    if (std::isfinite(line.y[i])) all.push_back(line.x[i]), sums.push_back(sums.back() + line.y[i]);
  size_t begin = 0, end = 0;
  for (const double at : all) {
    if (at - width / 2 < all.front() || at + width / 2 > all.back()) continue;
    while (all[begin] < at - width / 2) ++begin;
    while (end < all.size() && all[end] <= at + width / 2) ++end;
    x.push_back(at);
    y.push_back((sums[end] - sums[begin]) / static_cast<double>(end - begin));
  }
  return {std::move(x), std::move(y)};
}

/// Between the points next to x, going on from `next`, the first one beyond; NaN outside the line.
double value_at(const Line& line, double x, size_t& next) {
  while (next < line.x.size() && line.x[next] < x) ++next;
  if (next == line.x.size()) return kNone;
  if (line.x[next] == x) return line.y[next];
  if (next == 0) return kNone;
  const double share = (x - line.x[next - 1]) / (line.x[next] - line.x[next - 1]);
  return line.y[next - 1] + share * (line.y[next] - line.y[next - 1]);
}

}  // namespace

Line line_of(const Run& run, const std::string& series, XAxis x, bool means) {
  const Series* found = means ? run.find(series + "/mean") : nullptr;
  if (!found || found->value.empty()) found = run.find(series);
  if (!found) return {};
  return {positions(*found, x), found->value};
}

Line gap_line(const Run& run, XAxis x, bool ratio) {
  const Series *outside = run.find("ood/loss"), *inside = run.find("validation/loss");
  if (!outside || !inside) return {};
  std::vector<double> at, gap;
  size_t j = 0;
  for (size_t i = 0; i < outside->step.size(); ++i) {
    while (j < inside->step.size() && inside->step[j] < outside->step[i]) ++j;
    if (j == inside->step.size()) break;
    if (inside->step[j] != outside->step[i]) continue;
    at.push_back(positions(*outside, x)[i]);
    gap.push_back(ratio ? outside->value[i] / inside->value[j] : outside->value[i] - inside->value[j]);
  }
  return {std::move(at), std::move(gap)};
}

Line smoothed(const Line& line, const Smoothing& smoothing) {
  if (smoothing.kind == Smoothing::Kind::none || !(smoothing.width > 0)) return line;
  return smoothing.kind == Smoothing::Kind::exponential ? exponential(line, smoothing.width) : windowed(line, smoothing.width);
}

const char* to_string(Spread spread) {
  return spread == Spread::deviation ? "standard deviation" : spread == Spread::error ? "standard error" : "95 % interval";
}

Line mean_of(const std::vector<Line>& lines, Spread spread) {
  const auto longest = std::max_element(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    const double a_end = a.x.empty() ? -INFINITY : a.x.back(), b_end = b.x.empty() ? -INFINITY : b.x.back();
    return a_end < b_end;
  });
  if (longest == lines.end() || longest->x.empty()) return {};
  if (lines.size() == 1) return lines.front();
  std::vector<double> width(lines.size() + 1, 1);  // of the band in standard deviations, by the number of lines
  for (size_t n = 2; n <= lines.size() && spread != Spread::deviation; ++n) {
    const auto count = static_cast<double>(n);
    width[n] = (spread == Spread::error ? 1 : student_t_975(static_cast<int64_t>(n) - 1)) / std::sqrt(count);
  }
  std::vector<size_t> next(lines.size(), 0);
  std::vector<double> mean, low, high;
  for (const double x : longest->x) {
    double sum = 0, squares = 0;
    size_t count = 0;
    for (size_t k = 0; k < lines.size(); ++k) {
      const double y = value_at(lines[k], x, next[k]);
      if (!std::isfinite(y)) continue;
      ++count;
      const double away = y - sum;  // Welford: `sum` is the mean so far
      sum += away / static_cast<double>(count);
      squares += away * (y - sum);
    }
    const double deviation = count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0;
    mean.push_back(count > 0 ? sum : kNone);
    low.push_back(mean.back() - width[count] * deviation);
    high.push_back(mean.back() + width[count] * deviation);
  }
  return {longest->x, std::move(mean), std::move(low), std::move(high)};
}

}  // namespace saccade

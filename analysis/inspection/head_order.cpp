#include "analysis/inspection/head_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saccade {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

const std::vector<double>& values_of(const HeadScores& scores, HeadMeasure measure) {
  switch (measure) {
    case HeadMeasure::entropy: return scores.entropy;
    case HeadMeasure::distance: return scores.distance;
    case HeadMeasure::induction: return scores.induction;
  }
  return scores.entropy;
}

double value_of(const std::vector<HeadScores>& scores, HeadMeasure measure, const HeadPlace& place) {
  for (const HeadScores& s : scores)
    if (s.layer == place.layer) return values_of(s, measure).at(static_cast<size_t>(place.head));
  return kNothing;
}

/// What heads are compared by, each number over its deviation; one that is not known counts as the mean.
std::vector<std::array<double, 3>> features(const std::vector<HeadScores>& scores, const std::vector<HeadPlace>& heads) {
  std::vector<std::array<double, 3>> all;
  for (const HeadPlace& head : heads)
    all.push_back({value_of(scores, HeadMeasure::entropy, head), std::log1p(value_of(scores, HeadMeasure::distance, head)),
                   value_of(scores, HeadMeasure::induction, head)});
  for (size_t f = 0; f < 3; ++f) {
    double sum = 0, squares = 0, count = 0;
    for (const auto& row : all)
      if (std::isfinite(row[f])) sum += row[f], squares += row[f] * row[f], ++count;
    const double mean = count > 0 ? sum / count : 0, variance = count > 0 ? squares / count - mean * mean : 0;
    const double scale = variance > 1e-12 ? 1 / std::sqrt(variance) : 0;
    for (auto& row : all) row[f] = std::isfinite(row[f]) ? (row[f] - mean) * scale : 0;
  }
  return all;
}

double distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/// Groups that are made of heads, and how far they are apart in the mean of all pairs.
class Groups {
 public:
  explicit Groups(const std::vector<std::array<double, 3>>& points) : count_(points.size()), apart_(count_ * count_) {
    for (size_t i = 0; i < count_; ++i) {
      members_.push_back({i});
      for (size_t j = 0; j < i; ++j) at(i, j) = at(j, i) = distance(points[i], points[j]);
    }
  }
  bool gone(size_t group) const { return members_[group].empty(); }
  double apart(size_t a, size_t b) const { return apart_[a * count_ + b]; }
  /// The nearest to a group; `wanted` of those that are as near, else the first.
  size_t nearest(size_t group, size_t wanted) const {
    size_t best = wanted;
    for (size_t i = 0; i < count_; ++i)
      if (i != group && !gone(i) && (best == count_ || apart(group, i) < apart(group, best))) best = i;
    return best;
  }
  /// Under the name of the one with the earlier head, which stands in front.
  void join(size_t a, size_t b) {
    if (members_[b].front() < members_[a].front()) std::swap(a, b);
    const auto na = static_cast<double>(members_[a].size()), nb = static_cast<double>(members_[b].size());
    for (size_t i = 0; i < count_; ++i) at(a, i) = at(i, a) = (na * apart(a, i) + nb * apart(b, i)) / (na + nb);
    members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
    members_[b].clear();
  }
  const std::vector<size_t>& members(size_t group) const { return members_[group]; }

 private:
  double& at(size_t a, size_t b) { return apart_[a * count_ + b]; }
  size_t count_;
  std::vector<double> apart_;
  std::vector<std::vector<size_t>> members_;
};

/// Average linkage by chains of nearest neighbours, O(n²): a chain goes from group to nearest group until two are each other's nearest,
/// which become one. With average linkage no other pair comes nearer by that, so the tree is the one that joining the least distance
/// first gives (Murtagh, "A survey of recent advances in hierarchical clustering algorithms", Computer Journal 26, 1983).
std::vector<size_t> leaves(const std::vector<std::array<double, 3>>& points) {
  if (points.empty()) return {};
  Groups groups(points);
  std::vector<size_t> chain;
  for (size_t joined = 1; joined < points.size(); ++joined) {
    if (chain.empty())
      for (size_t i = 0; i < points.size() && chain.empty(); ++i)
        if (!groups.gone(i)) chain.push_back(i);
    for (;;) {
      const size_t last = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : points.size();
      const size_t next = groups.nearest(last, before);
      if (next == before) break;
      chain.push_back(next);
    }
    groups.join(chain[chain.size() - 2], chain.back());
    chain.resize(chain.size() - 2);
  }
  return groups.members(0);
}

const char* name_of(HeadMeasure measure) {
  switch (measure) {
    case HeadMeasure::entropy: return "entropy";
    case HeadMeasure::distance: return "distance";
    case HeadMeasure::induction: return "induction";
  }
  return "";
}

int64_t most_heads(const std::vector<HeadScores>& scores) {
  int64_t most = 0;
  for (const HeadScores& s : scores) most = std::max(most, static_cast<int64_t>(s.entropy.size()));
  return most;
}

void fit_range(HeatMap& map, HeadMeasure measure) {
  double most = 0;
  for (const float v : map.values)
    if (std::isfinite(v)) most = std::max(most, static_cast<double>(v));
  map.range = {0, measure == HeadMeasure::distance ? std::max(1.0, most) : 1};
}

}  // namespace

std::vector<HeadPlace> order_of_heads(const std::vector<HeadScores>& scores, HeadMeasure measure, HeadOrder order) {
  std::vector<HeadPlace> heads;
  for (const HeadScores& s : scores)
    for (size_t h = 0; h < s.entropy.size(); ++h) heads.push_back({s.layer, static_cast<int64_t>(h)});
  if (order == HeadOrder::similarity) {
    std::vector<HeadPlace> sorted;
    for (const size_t i : leaves(features(scores, heads))) sorted.push_back(heads[i]);
    return sorted;
  }
  if (order == HeadOrder::value)
    std::stable_sort(heads.begin(), heads.end(), [&](const HeadPlace& a, const HeadPlace& b) {
      const double of_a = value_of(scores, measure, a), of_b = value_of(scores, measure, b);
      return std::isnan(of_b) ? !std::isnan(of_a) : of_a > of_b;
    });
  return heads;
}

Figure head_scores_figure(const std::vector<HeadScores>& scores, const std::vector<HeadPlace>& heads, HeadMeasure measure, HeadOrder order,
                          const std::vector<std::string>& layer_mixers) {
  Figure figure;
  figure.id = std::string("heads-") + name_of(measure);
  figure.title = std::string(name_of(measure)) + " of every head";
  figure.width_mm = 120, figure.height_mm = 110;
  if (scores.empty()) return figure;
  const bool by_place = order == HeadOrder::place;
  HeatMap map;
  map.columns = most_heads(scores);
  const auto count = static_cast<int64_t>(heads.size());
  map.rows =
      by_place ? std::max(scores.back().layer + 1, static_cast<int64_t>(layer_mixers.size())) : (count + map.columns - 1) / map.columns;
  map.values.assign(static_cast<size_t>(map.rows * map.columns), std::numeric_limits<float>::quiet_NaN());
  for (const HeadPlace& head : heads) {
    const auto [row, column] = cell_of_head(heads, map, order, head);
    map.values[static_cast<size_t>(row * map.columns + column)] = static_cast<float>(value_of(scores, measure, head));
  }
  if (by_place) map.row_names = layer_mixers;
  map.value_title = measure == HeadMeasure::distance ? "distance (tokens)" : name_of(measure);
  fit_range(map, measure);
  figure.x.title = by_place ? "head" : "heads in order";
  figure.y.title = by_place ? "layer" : "row";
  figure.map = std::move(map);
  return figure;
}

HeadPlace head_at(const std::vector<HeadPlace>& heads, const HeatMap& map, HeadOrder order, int64_t row, int64_t column) {
  if (order == HeadOrder::place)
    return std::find(heads.begin(), heads.end(), HeadPlace{row, column}) == heads.end() ? HeadPlace{-1, 0} : HeadPlace{row, column};
  const int64_t at = row * map.columns + column;
  return at >= 0 && at < static_cast<int64_t>(heads.size()) ? heads[static_cast<size_t>(at)] : HeadPlace{-1, 0};
}

std::array<int64_t, 2> cell_of_head(const std::vector<HeadPlace>& heads, const HeatMap& map, HeadOrder order, const HeadPlace& head) {
  const auto found = std::find(heads.begin(), heads.end(), head);
  if (found == heads.end()) return {-1, -1};
  if (order == HeadOrder::place) return {head.layer, head.head};
  const int64_t at = found - heads.begin();
  return {at / map.columns, at % map.columns};
}

}  // namespace saccade

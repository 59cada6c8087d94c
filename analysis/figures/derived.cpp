#include "analysis/figures/derived.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/runs/layers.h"

namespace saccade {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr Colour kCandidate{0x56, 0xB4, 0xE9}, kChosen{0xD5, 0x5E, 0x00};

/// Between white and the colour, so that its hue stays.
Colour paler(Colour colour, double strength) {
  const auto mix = [&](uint8_t c) { return static_cast<uint8_t>(std::lround(255 - (255 - c) * strength)); };
  return {mix(colour.r), mix(colour.g), mix(colour.b)};
}

/// Means over windows that shrink symmetrically at the ends of each run of finite values; NaN stays NaN.
std::vector<double> moving_mean(const std::vector<double>& y, int64_t points) {
  std::vector<double> mean(y.size(), kUndefined);
  const auto finite = [&](size_t i) { return std::isfinite(y[i]); };
  for (size_t begin = 0; begin < y.size();) {
    size_t end = begin;
    while (end < y.size() && finite(end)) ++end;
    std::vector<double> sum{0};
    for (size_t i = begin; i < end; ++i) sum.push_back(sum.back() + y[i]);
    for (size_t i = begin; i < end; ++i) {
      const size_t half = std::min({static_cast<size_t>(points / 2), i - begin, end - 1 - i});
      mean[i] = (sum[i + half + 1 - begin] - sum[i - half - begin]) / static_cast<double>(2 * half + 1);
    }
    begin = end + 1;
  }
  return mean;
}

/// Mean over queries t ≥ 1 of H(|w_t|) / ln(t + 1), of one head's weights [T, T].
double mean_normalized_entropy(const float* weights, int64_t queries, int64_t sources) {
  double sum = 0;
  int64_t counted = 0;
  for (int64_t t = 1; t < queries; ++t) {
    const float* row = weights + t * sources;
    double total = 0, weighted = 0;  // H = ln Σ − Σ a ln a / Σ
    for (int64_t j = 0; j <= std::min(t, sources - 1); ++j) {
      const double a = std::abs(static_cast<double>(row[j]));
      total += a;
      if (a > 0) weighted += a * std::log(a);
    }
    if (!(total > 0)) continue;
    sum += (std::log(total) - weighted / total) / std::log(static_cast<double>(t + 1));
    ++counted;
  }
  return counted == 0 ? kUndefined : sum / static_cast<double>(counted);
}

/// A stem goes from the floor to the value and back, and then lifts the pen.
void add_stem(Curve& curve, double x, double value, double floor) {
  for (const double y : {value, floor, value, kUndefined}) {
    curve.x.push_back(x);
    curve.y.push_back(y);
  }
}

Figure weight_figure(const Reads& reads) {
  Figure figure{.id = "read-weights", .title = "Where this query read from", .x = {"source position"}, .y = {"weight"}};
  Curve curve;
  curve.label = "weight";
  curve.colour = {0x00, 0x72, 0xB2};
  curve.width = 1;
  for (size_t j = 0; j < reads.weights.size(); ++j) {
    curve.x.push_back(static_cast<double>(j));
    curve.y.push_back(reads.weights[j]);
  }
  curve.in_legend = false;
  figure.curves.push_back(std::move(curve));
  return figure;
}

}  // namespace

Figure smoothed(Figure figure, int64_t points) {
  if (points < 3) return figure;
  std::vector<Curve> raw, rest;
  for (Curve& curve : figure.curves) {
    if (curve.width >= 1) {
      rest.push_back(std::move(curve));
      continue;
    }
    Curve mean = curve;
    mean.y = moving_mean(curve.y, points);
    mean.label += ", mean of " + std::to_string(points) + " steps";
    mean.width = 1.2;
    if (curve.x.empty()) {
      rest.push_back(std::move(mean));
      continue;
    }
    curve.colour = paler(curve.colour, 0.35);
    curve.in_legend = false;
    curve.marker = Marker::none;
    raw.push_back(std::move(curve));
    rest.push_back(std::move(mean));
  }
  figure.curves = std::move(raw);  // beneath all others
  std::move(rest.begin(), rest.end(), std::back_inserter(figure.curves));
  return figure;
}

Figure difference(const Figure& a, const Figure& b, const std::string& id, const std::string& title, const std::string& y_title) {
  Figure figure = a;
  figure.id = id;
  figure.title = title;
  figure.y = {y_title};
  figure.curves.clear();
  for (const Curve& of_a : a.curves) {
    const auto of_b = std::find_if(b.curves.begin(), b.curves.end(), [&](const Curve& c) { return c.label == of_a.label; });
    if (of_b == b.curves.end()) continue;
    std::map<double, double> subtrahend;
    for (size_t i = 0; i < of_b->x.size(); ++i) subtrahend[of_b->x[i]] = of_b->y[i];
    Curve curve = of_a;
    curve.x.clear();
    curve.y.clear();
    for (size_t i = 0; i < of_a.x.size(); ++i)
      if (const auto at = subtrahend.find(of_a.x[i]); at != subtrahend.end()) {
        curve.x.push_back(of_a.x[i]);
        curve.y.push_back(of_a.y[i] - at->second);
      }
    if (!curve.x.empty()) figure.curves.push_back(std::move(curve));
  }
  return figure;
}

Figure layers_figure(const Run& run, const std::string& statistic, XAxis x, const RunSet& among) {
  const std::vector<LayerSeries> layers = layers_with(run, statistic);
  Figure figure = series_figure({&run}, layers.empty() ? statistic : layers.front().name, x, false, false, among);
  figure.id = statistic + "-layers";
  figure.title = statistic + " by layer";
  std::replace(figure.title.begin(), figure.title.end(), '_', ' ');
  figure.curves.clear();
  for (const LayerSeries& layer : layers)
    for (Curve& curve : series_figure({&run}, layer.name, x, false, false, among).curves) {
      curve.label = layer.label;
      curve.colour = paler(curve.colour, 0.4 + 0.6 * layer.depth);
      figure.curves.push_back(std::move(curve));
    }
  if (const Series* first = layers.empty() ? nullptr : run.find(layers.front().name); first && first->unit != "1" && !first->unit.empty())
    figure.y.title = figure.title.substr(0, figure.title.rfind(" by layer")) + " (" + first->unit + ")";
  else
    figure.y.title = figure.title.substr(0, figure.title.rfind(" by layer"));
  return figure;
}

std::optional<Curve> divergence_mark(const Run& run, XAxis x, const RunSet& among) {
  if (run.info().state != RunState::diverged) return {};
  for (Curve& curve : series_figure({&run}, "train/loss", x, false, false, among).curves) {
    for (size_t i = curve.y.size(); i > 0; --i) {
      if (!std::isfinite(curve.y[i - 1])) continue;
      curve.label += " diverged at step " + std::to_string(run.info().step);
      curve.x = {curve.x[i - 1]};
      curve.y = {curve.y[i - 1]};
      curve.marker = Marker::cross;
      curve.sparse = false;
      curve.width = 3;
      return curve;
    }
  }
  return {};
}

Figure capture_heads_figure(const Capture& capture) {
  Figure figure{.id = "entropy-heads", .title = "Entropy by layer and head", .x = {"head"}, .y = {"layer"}};
  HeatMap map;
  map.value_title = "entropy / ln(positions)";
  for (const CapturedMap& weights : capture.maps)
    if (weights.kind == MapKind::weights && weights.layer >= 0 && weights.shape.size() == 3) {
      map.rows = std::max(map.rows, weights.layer + 1);
      map.columns = std::max(map.columns, weights.shape[0]);
    }
  if (map.rows > 0) map.rows = std::max(map.rows, static_cast<int64_t>(capture.layer_mixers.size()));
  map.row_names = capture.layer_mixers;
  if (map.rows == 0) return figure;
  map.values.assign(static_cast<size_t>(map.rows * map.columns), std::numeric_limits<float>::quiet_NaN());
  for (const CapturedMap& weights : capture.maps) {
    if (weights.kind != MapKind::weights || weights.layer < 0 || weights.shape.size() != 3) continue;
    const int64_t queries = weights.shape[1], sources = weights.shape[2];
    for (int64_t head = 0; head < weights.shape[0]; ++head)
      map.values[static_cast<size_t>(weights.layer * map.columns + head)] =
          static_cast<float>(mean_normalized_entropy(weights.values.data() + head * queries * sources, queries, sources));
  }
  figure.map = std::move(map);
  figure.width_mm = figure.height_mm = 80;
  return figure;
}

Figure log_colours(Figure figure) {
  if (!figure.map) return figure;
  HeatMap& map = *figure.map;
  if (!map.diverging) {
    map.logarithmic = true;
    map.range = {map.range[1] * 1e-4, map.range[1]};
    return figure;
  }
  std::vector<float> sizes;
  for (const float v : map.values)
    if (v != 0 && std::isfinite(v)) sizes.push_back(std::abs(v));
  if (sizes.empty()) return figure;
  const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() - 1 - sizes.size() / 100);
  std::nth_element(sizes.begin(), end, sizes.end());
  map.range = {-static_cast<double>(*end), static_cast<double>(*end)};
  map.value_title += ", 1 % beyond the ends";
  return figure;
}

Figure candidates_figure(const Reads& reads) {
  const auto valued =
      std::count_if(reads.candidate_scores.begin(), reads.candidate_scores.end(), [](double s) { return std::isfinite(s); });
  if (valued == 0) return weight_figure(reads);
  Figure figure{.id = "candidate-scores", .title = "Score of every candidate", .x = {"candidate"}, .y = {"score"}};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double score : reads.candidate_scores)
    if (std::isfinite(score)) low = std::min(low, score), high = std::max(high, score);
  const double room = high > low ? 0.08 * (high - low) : 0.5;
  const double floor = low >= 0 && low < 0.5 * high ? 0 : low - room;
  figure.y.range = std::array<double, 2>{floor, high + room};
  figure.x.range = std::array<double, 2>{-0.7, static_cast<double>(reads.candidate_scores.size()) - 0.3};
  const double width = std::clamp(130.0 / static_cast<double>(reads.candidate_scores.size()), 1.0, 8.0);
  Curve others, chosen;
  others.label = "not chosen", others.colour = kCandidate, others.width = width;
  chosen.label = "chosen", chosen.colour = kChosen, chosen.width = width;
  for (size_t i = 0; i < reads.candidate_scores.size(); ++i) {
    const bool is_chosen =
        std::find(reads.chosen_candidates.begin(), reads.chosen_candidates.end(), static_cast<int64_t>(i)) != reads.chosen_candidates.end();
    if (std::isfinite(reads.candidate_scores[i]))
      add_stem(is_chosen ? chosen : others, static_cast<double>(i), reads.candidate_scores[i], floor);
  }
  figure.curves = {std::move(others), std::move(chosen)};
  return figure;
}

}  // namespace saccade

#include "analysis/figures/derived.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/figures/line.h"

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

double place_of(const Position& at, XAxis x) {
  switch (x) {
    case XAxis::tokens: return static_cast<double>(at.tokens);
    case XAxis::flops: return at.flops;
    case XAxis::seconds: return at.seconds;
    case XAxis::step: break;
  }
  return static_cast<double>(at.step);
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

void make_symmetric(Figure& figure, bool x, bool y) {
  const auto set = [&](AxisRecipe& axis, Column Curve::*values) {
    double largest = 0;
    for (const Curve& curve : figure.curves)
      for (const double v : curve.*values)
        if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    axis.logarithmic = false;
    axis.linear_within = largest > 0 ? std::pow(10, std::ceil(std::log10(largest)) - 3) : 1;
  };
  if (x) set(figure.x, &Curve::x);
  if (y) set(figure.y, &Curve::y);
}

Figure layers_figure(const DrawnRuns& drawn, const std::string& statistic, XAxis x) {
  const Run& run = *drawn.seeds.front();
  const std::vector<LayerSeries> layers = layers_with(run, statistic);
  Figure figure = series_figure(DrawnSet{drawn}, layers.empty() ? statistic : layers.front().name, {.x = x});
  figure.id = statistic + "-layers";
  figure.title = statistic + " by layer";
  std::replace(figure.title.begin(), figure.title.end(), '_', ' ');
  figure.curves.clear();
  for (const LayerSeries& layer : layers)
    for (Curve& curve : series_figure(DrawnSet{drawn}, layer.name, {.x = x}).curves) {
      curve.low = curve.high = {};
      curve.label = layer.label;
      curve.colour = paler(curve.colour, 0.4 + 0.6 * layer.depth);
      figure.curves.push_back(std::move(curve));
    }
  if (const Series* first = layers.empty() ? nullptr : run.find(layers.front().name); first && first->unit != "1" && !first->unit.empty())
    figure.y.title = figure.title.substr(0, figure.title.rfind(" by layer")) + " (" + first->unit + ")";
  else
    figure.y.title = figure.title.substr(0, figure.title.rfind(" by layer"));
  if (statistic == "entropy_normalized") figure.y.range = {0, 1};  // what one run shows can be held against another's
  return figure;
}

std::vector<Curve> divergence_marks(const DrawnRuns& drawn, XAxis x) {
  std::vector<Curve> marks;
  for (const Run* run : drawn.seeds) {
    if (run->info().state != RunState::diverged) continue;
    const Line line = line_of(*run, "train/loss", x);
    for (size_t i = line.y.size(); i > 0; --i) {
      if (!std::isfinite(line.y[i - 1])) continue;
      Curve mark{drawn.label + " diverged at step " + std::to_string(run->info().step), {line.x[i - 1]}, {line.y[i - 1]}, drawn.colour};
      mark.marker = Marker::cross;
      mark.width = 3;
      marks.push_back(std::move(mark));
      break;
    }
  }
  return marks;
}

std::vector<Curve> not_finite_marks(const DrawnRuns& drawn, XAxis x) {
  std::vector<Curve> marks;
  for (const Run* run : drawn.seeds) {
    const Series* losses = run->find("train/loss");
    std::vector<LossGap> gaps = run->loss_gaps();
    const bool ends_so = losses && !losses->value.empty() && !std::isfinite(losses->value.back());
    if (!gaps.empty() && ends_so && run->info().state == RunState::diverged) gaps.pop_back();  // its end has a mark of its own
    Curve mark{.label = {}, .x = {}, .y = {}, .colour = drawn.colour, .marker = Marker::cross, .width = 2, .in_legend = true};
    for (const LossGap& gap : gaps) {
      if (!std::isfinite(gap.beside)) continue;  // no loss at all yet
      if (mark.x.empty()) mark.label = drawn.label + (gap.infinite ? " infinite at step " : " NaN at step ") + std::to_string(gap.at.step);
      for (const double y : {gap.beside, kUndefined}) mark.x.push_back(place_of(gap.at, x)), mark.y.push_back(y);  // no line through them
    }
    if (!mark.x.empty()) marks.push_back(std::move(mark));
  }
  return marks;
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
  constexpr double floor = 0;  // lengths are compared, so all begin there
  const double reach = std::max(high, floor) - std::min(low, floor), room = reach > 0 ? 0.06 * reach : 0.5;
  figure.y.range = std::array<double, 2>{low < 0 ? low - room : 0, high > 0 ? high + room : 0};
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

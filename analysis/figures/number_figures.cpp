#include "analysis/figures/number_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "analysis/comparison/power_law.h"
#include "analysis/comparison/statistics.h"
#include "analysis/comparison/training_loss.h"
#include "analysis/figures/curve_kin.h"
#include "analysis/runs/layers.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double last_of(const Run& run, const std::string& name) {
  const Series* series = run.find(name);
  return series && !series->value.empty() ? series->value.back() : kNothing;
}

double mean_over_layers(const Run& run, const std::string& statistic) {
  double sum = 0, count = 0;
  for (const LayerSeries& layer : layers_with(run, statistic))
    if (const double value = last_of(run, layer.name); std::isfinite(value)) sum += value, ++count;
  return count > 0 ? sum / count : kNothing;
}

double setting_of(const Run& run, const std::string& dotted) {
  const Json* at = &run.info().config;
  for (size_t from = 0; from <= dotted.size();) {
    const size_t dot = std::min(dotted.find('.', from), dotted.size());
    const std::string key = dotted.substr(from, dot - from);
    if (!at->is_object() || !at->contains(key)) return kNothing;
    at = &at->at(key);
    from = dot + 1;
  }
  return at->is_number() ? at->get<double>() : kNothing;
}

/// As other figures call it, so that a page of several has one name for it.
std::string named(const DrawnRuns& drawn, size_t seeds) {
  return drawn.seeds.size() > 1 ? drawn.label + ", mean of " + std::to_string(seeds) : drawn.label;
}

std::string fit_text(const char* pattern, double a, double b = 0, double c = 0) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

/// "x^−0.345 (0.301 to 0.389)"; where a sign would be read wrongly "x^−a, a 0.033 (−0.073 to 0.116)".
std::string exponent_text(const PowerLaw& law) {
  const auto number = [](double value) { return (value < 0 ? "−" : "") + fit_text("%.3f", std::abs(value)); };
  const bool falls = law.exponent > 0 && (!law.exponent_95 || (*law.exponent_95)[0] > 0);
  std::string text = falls ? "x^−" + number(law.exponent) : "x^−a, a " + number(law.exponent);
  if (law.exponent_95) text += " (" + number((*law.exponent_95)[0]) + " to " + number((*law.exponent_95)[1]) + ")";
  return text;
}

/// Of the law through all runs of an architecture, from its least x to its greatest.
void add_fit(Figure& figure, const Kin& one, Fit kind) {
  const auto law = kind == Fit::power_law ? fit_power_law(one.all_x, one.all_y) : fit_power_law_with_floor(one.all_x, one.all_y);
  if (!law) return;
  Curve curve{.label = exponent_text(*law), .x = {}, .y = {}, .colour = one.colour, .dash = Dash::dash};
  if (law->floor > 0) curve.label += fit_text(" + %.3f", law->floor);
  curve.label += ", " + one.label;
  constexpr int kPieces = 48;
  const double low = std::log(one.points.front().x), high = std::log(one.points.back().x);
  for (int i = 0; i <= kPieces; ++i) {
    const double x = std::exp(low + (high - low) * i / kPieces);
    curve.x.push_back(x), curve.y.push_back(law->at(x));
  }
  figure.curves.push_back(std::move(curve));
}

void collect_settings(const Json& object, const std::string& prefix, std::vector<std::string>& names) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) collect_settings(value, prefix + key + ".", names);
    if (value.is_number()) names.push_back(prefix + key);
  }
}

}  // namespace

double run_number(const Run& run, const std::string& name, const EndEvaluations* ends) {
  if (ends && is_end_loss(name)) {
    const double inside = ends->loss(run, false);
    if (name == "validation_perplexity") return std::exp(inside);
    return name == "validation" ? inside : ends->loss(run, true) - (name == "gap" ? inside : 0);
  }
  const RunInfo& info = run.info();
  if (name == "parameters") return static_cast<double>(info.parameters);
  if (name == "validation") return last_of(run, "validation/loss");
  if (name == "ood") return last_of(run, "ood/loss");
  if (name == "gap") return last_of(run, "ood/loss") - last_of(run, "validation/loss");
  if (name == "perplexity") return std::exp(final_training_loss(run));
  if (name == "validation_perplexity") return std::exp(last_of(run, "validation/loss"));
  if (name == "entropy") return mean_over_layers(run, "entropy_normalized");
  if (name == "tokens_per_second") return run.tokens_per_second();
  const Series* steps = run.find("train/loss");
  const auto last_step = [&](const Column Series::*column) {
    return steps && !(steps->*column).empty() ? (steps->*column).back() : kNothing;
  };
  if (name == "tokens") return last_step(&Series::tokens);
  if (name == "tokens_times_parameters") return last_step(&Series::tokens) * static_cast<double>(info.parameters);
  if (name == "flops") return last_step(&Series::flops);
  if (name == "seconds") return last_step(&Series::seconds);
  if (name.find('.') != std::string::npos) return setting_of(run, name);
  return last_of(run, name);
}

bool is_end_loss(const std::string& name) {
  return name == "validation" || name == "ood" || name == "gap" || name == "validation_perplexity";
}

std::string number_title(const std::string& name, const std::string& split) {
  static const std::map<std::string, std::string> of_split{{"validation", "in-domain loss, %s split (nats)"},
                                                           {"ood", "OOD loss, %s split (nats)"},
                                                           {"gap", "OOD loss − in-domain loss, %s split (nats)"},
                                                           {"validation_perplexity", "in-domain perplexity, %s split"}};
  if (const auto at = of_split.find(name); at != of_split.end() && !split.empty()) {
    std::string title = at->second;
    return title.replace(title.find("%s"), 2, split);
  }
  static const std::map<std::string, std::string> known{{"validation", "validation loss (nats)"},
                                                        {"ood", "OOD loss (nats)"},
                                                        {"gap", "OOD loss − validation loss (nats)"},
                                                        {"tokens", "training tokens"},
                                                        {"tokens_times_parameters", "training tokens × parameters"},
                                                        {"perplexity", "training perplexity"},
                                                        {"validation_perplexity", "validation perplexity"},
                                                        {"flops", "training FLOPs"},
                                                        {"seconds", "training time (s)"},
                                                        {"tokens_per_second", "tokens/s"},
                                                        {"entropy", "normalised attention entropy"}};
  std::string last = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
  const auto found = known.find(last);
  if (found != known.end()) return found->second;
  std::replace(last.begin(), last.end(), '_', ' ');
  return last;
}

std::vector<std::string> varied_settings(const RunSet& runs) {
  std::vector<std::string> names, varied;
  std::map<std::string, std::set<double>> values;
  for (const Run* run : runs) {
    std::vector<std::string> own;
    collect_settings(run->info().config, "", own);
    for (const std::string& name : own) {
      const auto [at, is_new] = values.try_emplace(name);
      if (is_new) names.push_back(name);
      at->second.insert(setting_of(*run, name));
    }
  }
  std::copy_if(names.begin(), names.end(), std::back_inserter(varied), [&](const std::string& name) { return values[name].size() > 1; });
  return varied;
}

namespace {

/// A setting, or what was spent: one number leads to the next. Of two things that came out, neither does.
bool leads(const std::string& against) {
  return against.find('.') != std::string::npos || against == "parameters" || against == "flops" || against == "tokens" ||
         against == "tokens_times_parameters" || against == "seconds";
}

/// What a band shows along a line, at points that no line joins.
void add_bar(Figure& figure, const Kin::Point& point, const std::string& label, Colour colour) {
  if (point.deviation > 0)
    figure.curves.push_back({.label = label + ", ± one standard deviation",
                             .x = {point.x, point.x},
                             .y = {point.y - point.deviation, point.y + point.deviation},
                             .colour = colour,
                             .width = 1,
                             .in_legend = false});
}

/// Each group by itself, with its own name, shade and marker.
void add_groups(Figure& figure, const Kin& one) {
  for (const Kin::Point& point : one.points) {
    figure.curves.push_back({.label = named(*point.group, point.seeds),
                             .x = {point.x},
                             .y = {point.y},
                             .colour = point.group->colour,
                             .marker = point.group->marker == Marker::none ? Marker::circle : point.group->marker,
                             .low = {point.y - point.deviation},
                             .high = {point.y + point.deviation}});
    add_bar(figure, point, figure.curves.back().label, point.group->colour);
  }
}

}  // namespace

Figure number_figure(const DrawnSet& drawn, const std::string& value, const std::string& against, Fit fit, const EndEvaluations* ends) {
  const std::string split = ends ? ends->split() : std::string();
  Figure figure{.id = "setting",
                .title = number_title(value, split) + " by " + number_title(against, split),
                .x = {number_title(against, split), false, false, {}},
                .y = {number_title(value, split), false, false, {}}};
  const NumberOf across = [&](const Run& run) { return run_number(run, against, ends); };
  const NumberOf up = [&](const Run& run) { return run_number(run, value, ends); };
  for (const Kin& one : kin_of(drawn, across, up, against, fit == Fit::none && leads(against))) {
    if (!leads(against)) {
      add_groups(figure, one);
      if (fit != Fit::none) add_fit(figure, one, fit);
      continue;
    }
    Curve curve{.label = one.label, .x = {}, .y = {}, .colour = one.colour, .marker = one.marker};
    for (const Kin::Point& point : one.points) {
      if (fit != Fit::none && !curve.x.empty())  // not joined
        for (Column* column : {&curve.x, &curve.y, &curve.low, &curve.high}) column->push_back(kNothing);
      curve.x.push_back(point.x), curve.y.push_back(point.y);
      curve.low.push_back(point.y - point.deviation), curve.high.push_back(point.y + point.deviation);
    }
    figure.curves.push_back(std::move(curve));
    if (fit != Fit::none || one.points.size() == 1)
      for (const Kin::Point& point : one.points) add_bar(figure, point, one.label, one.colour);
    if (fit != Fit::none) add_fit(figure, one, fit);
  }
  return figure;
}

Figure position_figure(const DrawnSet& drawn, const std::string& domain) {
  Figure figure{.id = "loss-by-position",
                .title = "Loss by position in the sequence",
                .x = {"position in the sequence", true, false, {}},
                .y = {domain.empty() ? "loss (nats)" : "loss on " + domain + " (nats)", false, false, {}}};
  for (const DrawnRuns& each : drawn) {
    std::map<std::pair<int64_t, int64_t>, std::vector<double>> of_seeds;  // by bin
    size_t seeds = 0;
    for (const Run* run : each.seeds) {
      if (!run->last_evaluation()) continue;
      const std::vector<DomainLoss>& losses = run->last_evaluation()->losses;
      const bool has_ood = std::any_of(losses.begin(), losses.end(), [](const DomainLoss& l) { return l.ood; });
      std::map<std::pair<int64_t, int64_t>, std::vector<double>> of_domains;
      for (const DomainLoss& loss : losses)
        if (domain.empty() ? loss.ood == has_ood : loss.domain == domain)
          for (const PositionLoss& bin : loss.by_position) of_domains[{bin.begin, bin.end}].push_back(bin.loss);
      for (const auto& [bin, values] : of_domains) of_seeds[bin].push_back(mean(values));
      seeds += !of_domains.empty();
    }
    if (of_seeds.empty()) continue;
    Curve curve{.label = named(each, seeds), .x = {}, .y = {}, .colour = each.colour, .dash = each.dash, .marker = each.marker};
    for (const auto& [bin, values] : of_seeds) {
      const double level = mean(values), spread = deviation(values).value_or(0);
      curve.x.push_back(0.5 * static_cast<double>(bin.first + 1 + bin.second)), curve.y.push_back(level);
      curve.low.push_back(level - spread), curve.high.push_back(level + spread);
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

}  // namespace saccade

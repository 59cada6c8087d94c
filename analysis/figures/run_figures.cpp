#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "analysis/comparison/comparison.h"
#include "analysis/figures/figure.h"
#include "analysis/figures/palette.h"
#include "analysis/runs/layers.h"

namespace saccade {
namespace {

/// A run and how its curves look.
struct Styled {
  const Run* run;
  RunLook look;
};

std::vector<Styled> styles(const RunSet& runs, const RunSet& among) {
  std::vector<RunLook> looks = run_looks(runs, among);
  std::vector<Styled> list;
  for (size_t i = 0; i < runs.size(); ++i) list.push_back({runs[i], std::move(looks[i])});
  return list;
}

const std::vector<double>& positions(const Series& series, XAxis x) {
  switch (x) {
    case XAxis::tokens: return series.tokens;
    case XAxis::flops: return series.flops;
    case XAxis::seconds: return series.seconds;
    case XAxis::step: break;
  }
  return series.step;
}

const char* axis_title(XAxis x) {
  switch (x) {
    case XAxis::tokens: return "training tokens";
    case XAxis::flops: return "training FLOPs";
    case XAxis::seconds: return "training time (s)";
    case XAxis::step: break;
  }
  return "step";
}

/// A line; where its colour does not tell the architecture, a few markers do.
void add_curve(Figure& figure, const Styled& style, const std::string& series_name, XAxis x,
               const std::function<void(Curve&)>& adjust = {}) {
  const Series* series = style.run->find(series_name);
  if (!series || series->value.empty()) return;
  const RunLook& look = style.look;
  Curve curve{look.label, positions(*series, x), series->value, look.colour, look.dash};
  curve.marker = look.marker == Marker::circle ? Marker::none : look.marker;
  curve.sparse = true;
  if (adjust) adjust(curve);
  figure.curves.push_back(std::move(curve));
}

/// What kind of curve it is, for the legend only.
void add_key(Figure& figure, const std::string& label, double width, Marker marker) {
  Curve key{label, {}, {}, {0x70, 0x70, 0x70}};
  key.width = width;
  key.marker = marker;
  figure.curves.push_back(std::move(key));
}

std::vector<std::string> provenance(const RunSet& runs) {
  std::vector<std::string> lines;
  for (const Run* run : runs) {
    const RunInfo& info = run->info();
    std::string line = "run " + info.directory.filename().string() + ": " + info.title + ", seed " + std::to_string(info.seed) + ", step " +
                       std::to_string(info.step) + " of " + std::to_string(info.steps);
    for (const char* key : {"config_hash", "corpus_hash", "tokenizer_hash", "code_version", "device", "started"})
      if (const auto value = info.provenance.find(key); value != info.provenance.end() && value->is_string())
        line += std::string(", ") + key + " " + value->get<std::string>();
    for (const std::string& problem : {run->damage(), run->lost()})
      if (!problem.empty()) line += ", " + problem;
    lines.push_back(line);
  }
  return lines;
}

/// Between white and the colour, so that layers of one run keep its hue.
Colour shade(Colour colour, double strength) {
  const auto mix = [&](uint8_t c) { return static_cast<uint8_t>(std::lround(255 - (255 - c) * strength)); };
  return {mix(colour.r), mix(colour.g), mix(colour.b)};
}

/// "gradient_norm" → "gradient norm"; the unit behind it unless it is a pure number.
std::string readable(const std::string& name, const std::string& unit) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', ' ');
  std::replace(text.begin(), text.end(), '/', ' ');
  return text + (unit.empty() || unit == "1" ? "" : " (" + unit + ")");
}

}  // namespace

Figure loss_figure(const RunSet& runs, XAxis x, bool log_x, bool log_y, const RunSet& among) {
  Figure figure{
      .id = "loss", .title = "Pre-training and OOD loss", .x = {axis_title(x), log_x, false, {}}, .y = {"loss (nats)", log_y, false, {}}};
  bool any_validation = false, any_ood = false, any_training = false;
  for (const Styled& style : styles(runs, among)) {
    const bool validated = style.run->find("validation/loss") != nullptr;
    any_validation = any_validation || validated;
    any_training = any_training || style.run->find("train/loss");
    any_ood = any_ood || style.run->find("ood/loss");
    add_curve(figure, style, "train/loss", x, [&](Curve& c) {
      c.width = 0.6;
      c.in_legend = !validated;
      if (validated) c.label += ", training", c.marker = Marker::none;
    });
    add_curve(figure, style, "validation/loss", x);
    add_curve(figure, style, "ood/loss", x,
              [&](Curve& c) { c.label += ", OOD", c.marker = style.look.marker, c.sparse = false, c.in_legend = false; });
  }
  if (any_validation) add_key(figure, "validation", 1.5, Marker::none);
  if (any_ood) add_key(figure, "OOD", 1.5, Marker::circle);
  if (any_training) add_key(figure, "training", 0.6, Marker::none);
  figure.provenance = provenance(runs);
  return figure;
}

Figure trajectory_figure(const RunSet& runs, const std::string& domain, std::optional<double> at_loss, const RunSet& among,
                         const PretrainingLoss& pretraining) {
  Figure figure{.id = "ood-against-pretraining", .title = "OOD loss against pre-training loss"};
  const char* kinds[] = {"pre-training loss (nats)", "pre-training loss, domains by their tokens (nats)", "training loss, smoothed (nats)"};
  figure.x = {kinds[static_cast<size_t>(pretraining.kind)], false, true, {}};
  figure.y = {domain.empty() ? "OOD loss (nats)" : "OOD loss on " + domain + " (nats)", false, false, {}};
  if (!domain.empty()) figure.id += "-" + domain;
  for (const Styled& style : styles(runs, among)) {
    Trajectory t = trajectory(*style.run, domain, pretraining);
    if (t.step.empty()) continue;
    const RunLook& look = style.look;
    figure.curves.push_back({look.label, std::move(t.pretraining), std::move(t.ood), look.colour, look.dash, look.marker});
  }
  figure.identity_line = true;
  if (at_loss) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "at loss %.3f", *at_loss);
    figure.vertical_line = at_loss;
    figure.vertical_label = text.data();
  }
  figure.provenance = provenance(runs);
  return figure;
}

Figure entropy_figure(const RunSet& runs, XAxis x, bool normalized, const RunSet& among) {
  const std::string name = normalized ? "entropy_normalized" : "entropy";
  Figure figure{
      .id = name, .title = "Attention entropy by layer", .x = {axis_title(x), false, false, {}}, .y = {"entropy (nats)", false, false, {}}};
  if (normalized) figure.y = {"entropy / ln(positions)", false, false, std::array<double, 2>{0, 1}};
  for (const Styled& style : styles(runs, among)) {
    for (const LayerSeries& layer : layers_with(*style.run, name))
      add_curve(figure, style, layer.name, x, [&](Curve& c) {
        c.label += ", " + layer.label;
        c.colour = shade(c.colour, 0.4 + 0.6 * layer.depth);
      });
  }
  figure.provenance = provenance(runs);
  return figure;
}

Figure series_figure(const RunSet& runs, const std::string& series_name, XAxis x, bool log_x, bool log_y, const RunSet& among) {
  std::string unit;
  for (const Run* run : runs)
    if (const Series* series = run->find(series_name)) unit = series->unit;
  Figure figure{.id = series_name,
                .title = readable(series_name, ""),
                .x = {axis_title(x), log_x, false, {}},
                .y = {readable(series_name, unit), log_y, false, {}}};
  std::replace(figure.id.begin(), figure.id.end(), '/', '-');
  for (const Styled& style : styles(runs, among)) add_curve(figure, style, series_name, x);
  figure.provenance = provenance(runs);
  return figure;
}

}  // namespace saccade

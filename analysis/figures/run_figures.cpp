#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/comparison.h"
#include "analysis/figures/figure.h"

namespace saccade {
namespace {

/// How the curves of one run look and what the legend calls it.
struct RunStyle {
  const Run* run;
  std::string label;
  Colour colour;
  Dash dash;
};

std::vector<RunStyle> styles(const std::vector<const Run*>& runs, Titles titles) {
  std::map<std::string, std::vector<const Run*>> by_title;
  for (const Run* run : runs) {
    by_title[run->info().title].push_back(run);
    titles.push_back(run->info().title);
  }
  std::vector<RunStyle> list;
  for (const Run* run : runs) {
    const RunInfo& info = run->info();
    auto& mates = by_title[info.title];
    std::stable_sort(mates.begin(), mates.end(), [](const Run* a, const Run* b) { return a->info().seed < b->info().seed; });
    const auto rank = std::find(mates.begin(), mates.end(), run) - mates.begin();
    const bool same_seed = std::any_of(mates.begin(), mates.end(), [&](const Run* m) { return m != run && m->info().seed == info.seed; });
    std::string label = info.title;
    if (same_seed)
      label += " (" + info.name + ")";
    else if (mates.size() > 1)
      label += ", seed " + std::to_string(info.seed);
    list.push_back({run, label, architecture_colour(info.title, titles), seed_dash(rank)});
  }
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

void add_curve(Figure& figure, const RunStyle& style, const std::string& series_name, XAxis x,
               const std::function<void(Curve&)>& adjust = {}) {
  const Series* series = style.run->find(series_name);
  if (!series || series->value.empty()) return;
  Curve curve{style.label, positions(*series, x), series->value, style.colour, style.dash};
  if (adjust) adjust(curve);
  figure.curves.push_back(std::move(curve));
}

std::vector<std::string> provenance(const std::vector<const Run*>& runs) {
  std::vector<std::string> lines;
  for (const Run* run : runs) {
    const RunInfo& info = run->info();
    std::string line = "run " + info.directory.filename().string() + ": " + info.title + ", seed " + std::to_string(info.seed) + ", step " +
                       std::to_string(info.step) + " of " + std::to_string(info.steps);
    for (const char* key : {"config_hash", "corpus_hash", "tokenizer_hash", "code_version", "device", "started"})
      if (const auto value = info.provenance.find(key); value != info.provenance.end() && value->is_string())
        line += std::string(", ") + key + " " + value->get<std::string>();
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

Figure loss_figure(const std::vector<const Run*>& runs, XAxis x, bool log_x, bool log_y, const Titles& titles) {
  Figure figure{
      .id = "loss", .title = "Pre-training and OOD loss", .x = {axis_title(x), log_x, false, {}}, .y = {"loss (nats)", log_y, false, {}}};
  for (const RunStyle& style : styles(runs, titles)) {
    const bool validated = style.run->find("validation/loss") != nullptr;
    add_curve(figure, style, "train/loss", x, [&](Curve& c) {
      c.width = 0.6;
      c.in_legend = !validated;
      if (validated) c.label += ", training";
    });
    add_curve(figure, style, "validation/loss", x);
    add_curve(figure, style, "ood/loss", x, [](Curve& c) { c.label += ", OOD", c.marker = Marker::circle; });
  }
  figure.provenance = provenance(runs);
  return figure;
}

Figure trajectory_figure(const std::vector<const Run*>& runs, const std::string& domain, std::optional<double> at_loss,
                         const Titles& titles) {
  Figure figure{.id = "ood-against-pretraining", .title = "OOD loss against pre-training loss"};
  figure.x = {"pre-training loss (nats)", false, true, {}};
  figure.y = {domain.empty() ? "OOD loss (nats)" : "OOD loss on " + domain + " (nats)", false, false, {}};
  if (!domain.empty()) figure.id += "-" + domain;
  for (const RunStyle& style : styles(runs, titles)) {
    Trajectory t = trajectory(*style.run, domain);
    if (t.step.empty()) continue;
    figure.curves.push_back({style.label, std::move(t.pretraining), std::move(t.ood), style.colour, style.dash, Marker::circle});
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

Figure entropy_figure(const std::vector<const Run*>& runs, XAxis x, bool normalized, const Titles& titles) {
  const std::string name = normalized ? "entropy_normalized" : "entropy";
  Figure figure{
      .id = name, .title = "Attention entropy by layer", .x = {axis_title(x), false, false, {}}, .y = {"entropy (nats)", false, false, {}}};
  if (normalized) figure.y = {"entropy / ln(positions)", false, false, std::array<double, 2>{0, 1}};
  for (const RunStyle& style : styles(runs, titles)) {
    std::vector<std::string> layers;
    for (int64_t layer = 0; style.run->find(name + "/layer" + std::to_string(layer)); ++layer)
      layers.push_back(name + "/layer" + std::to_string(layer));
    for (size_t i = 0; i < layers.size(); ++i)
      add_curve(figure, style, layers[i], x, [&](Curve& c) {
        c.label += ", layer " + std::to_string(i);
        c.colour = shade(c.colour, layers.size() == 1 ? 1 : 0.4 + 0.6 * static_cast<double>(i) / static_cast<double>(layers.size() - 1));
      });
  }
  figure.provenance = provenance(runs);
  return figure;
}

Figure series_figure(const std::vector<const Run*>& runs, const std::string& series_name, XAxis x, bool log_x, bool log_y,
                     const Titles& titles) {
  std::string unit;
  for (const Run* run : runs)
    if (const Series* series = run->find(series_name)) unit = series->unit;
  Figure figure{.id = series_name,
                .title = readable(series_name, ""),
                .x = {axis_title(x), log_x, false, {}},
                .y = {readable(series_name, unit), log_y, false, {}}};
  std::replace(figure.id.begin(), figure.id.end(), '/', '-');
  for (const RunStyle& style : styles(runs, titles)) add_curve(figure, style, series_name, x);
  figure.provenance = provenance(runs);
  return figure;
}

}  // namespace saccade

#include "analysis/studies/report/pictures.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/figures/palette.h"
#include "analysis/studies/report/tuning_table.h"

namespace saccade {

namespace {

using Cells = std::vector<CellNumbers>;

/// A curve without points for each of some cells.
std::vector<Curve> curves_of(const std::vector<std::string>& labels, const std::vector<std::string>& architectures) {
  const std::vector<VariantLook> looks = variant_looks(architectures);
  std::vector<Curve> curves;
  for (size_t i = 0; i < labels.size(); ++i) {
    Curve curve;
    curve.label = labels[i], curve.colour = looks[i].colour, curve.marker = looks[i].marker;
    curves.push_back(curve);
  }
  return curves;
}

Figure trajectory_picture(const StudyView& view, const Cells& cells, const LossWords& words_of) {
  Figure figure{.id = "ood-against-pretraining", .title = "OOD loss against pre-training loss"};
  const bool train = words_of.pretraining.kind == PretrainingLoss::Kind::train;
  const std::string loss = train ? "training loss" : equal_split(cells) + " loss of the training domains";
  const bool weighted = words_of.pretraining.kind == PretrainingLoss::Kind::weighted;
  figure.x = {.title = loss + (weighted ? ", by their tokens (" : " (") + words_of.unit + ")", .reversed = true};
  figure.y = {.title = "OOD loss (" + words_of.unit + ")"};
  figure.identity_line = true;
  std::vector<std::string> names, architectures;
  for (const CellNumbers& cell : cells) names.push_back(cell.name), architectures.push_back(view.cells[cell.cell].architecture());
  const std::vector<Curve> looks = curves_of(names, architectures);
  for (size_t i = 0; i < cells.size(); ++i)
    for (size_t rank = 0; rank < cells[i].seeds.size(); ++rank) {
      Curve curve = looks[i];
      curve.x = cells[i].seeds[rank].trajectory.pretraining, curve.y = cells[i].seeds[rank].trajectory.ood;
      curve.dash = seed_dash(rank), curve.in_legend = rank == 0;
      curve.label += rank == 0 ? " (" + read_from(cells[i]) + ")" : ", seed " + std::to_string(cells[i].seeds[rank].seed);  // of the CSV
      figure.curves.push_back(std::move(curve));
      figure.provenance.push_back(equal_sources(cells[i])[rank]);
    }
  return figure;
}

Figure tuning_picture(const StudyView& view) {
  Figure figure{.id = "tuning", .title = "Validation loss against the tuned setting"};
  figure.x = {.title = view.study.tuning->setting, .logarithmic = true};
  figure.y = {.title = "validation loss (nats per token)"};
  std::vector<std::string> names, architectures;
  for (const StudyCell& cell : view.cells) names.push_back(cell.name), architectures.push_back(cell.architecture());
  std::vector<Curve> curves = curves_of(names, architectures);
  for (size_t i = 0; i < curves.size(); ++i) {
    for (const TriedValue& tried : view.views[i].tuning.tried) {
      curves[i].x.push_back(tried.value);
      curves[i].y.push_back(std::isfinite(tried.loss) ? tried.loss : std::nan(""));
      for (std::string& source : tuning_sources(view, i, tried.value)) figure.provenance.push_back(std::move(source));
    }
    curves[i].label += " (" + std::string(to_string(view.views[i].tuning.state)) + ")";
    figure.curves.push_back(curves[i]);
  }
  return figure;
}

/// The other axes' labels of a cell: what a curve over one axis is called.
std::string others_of(const StudyCell& cell, size_t axis) {
  std::string name;
  for (size_t i = 0; i < cell.labels.size(); ++i)
    if (i != axis) name += (name.empty() ? "" : ", ") + cell.labels[i];
  return name.empty() ? "all" : name;
}

/// One number of a seed, drawn over a numeric axis.
struct SettingCurve {
  std::string label;  ///< behind the curve's name
  Dash dash = Dash::solid;
  std::function<Repeated(const CellNumbers&)> value;  ///< over seeds; no mean: no point
};

/// For every value of the other axes, curves over a numeric one.
Figure over_setting(const StudyView& view, const Cells& cells, size_t axis, Figure figure, const std::vector<SettingCurve>& kinds) {
  figure.x = {.title = view.study.axes[axis].name};
  std::vector<std::string> labels, architectures;
  for (const StudyCell& cell : view.cells)
    if (const std::string label = others_of(cell, axis); std::find(labels.begin(), labels.end(), label) == labels.end())
      labels.push_back(label), architectures.push_back(cell.architecture());
  const std::vector<Curve> looks = curves_of(labels, architectures);
  bool banded = false;
  for (size_t k = 0; k < labels.size(); ++k)
    for (const SettingCurve& kind : kinds) {
      Curve curve = looks[k];
      curve.label += kind.label, curve.dash = kind.dash;
      std::vector<std::pair<double, Repeated>> points;
      for (const CellNumbers& cell : cells) {
        const auto number = view.cells[cell.cell].numbers[axis];
        if (!number || others_of(view.cells[cell.cell], axis) != labels[k] || cell.seeds.empty()) continue;
        const Repeated value = kind.value(cell);
        if (value.count == 0 || !std::isfinite(value.mean)) continue;
        points.emplace_back(*number, value);
        for (const std::string& source : sources_of(cell)) figure.provenance.push_back(source);
      }
      std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [x, y] : points) curve.x.push_back(x), curve.y.push_back(y.mean);
      if (std::any_of(points.begin(), points.end(), [](const auto& p) { return p.second.half_95.has_value(); })) {
        for (const auto& [x, y] : points)
          curve.low.push_back(y.mean - y.half_95.value_or(0)), curve.high.push_back(y.mean + y.half_95.value_or(0));
        banded = true;
      }
      figure.curves.push_back(std::move(curve));
    }
  if (banded) figure.title += "; bands: 95 % interval of the mean over seeds";
  const auto& values = view.study.axes[axis].values;
  const double first = values.front().number.value_or(0), last = values.back().number.value_or(0);
  figure.x.logarithmic = std::min(first, last) > 0 && std::max(first, last) / std::min(first, last) >= 8;
  return figure;
}

/// Mean losses: in-domain solid, OOD dashed.
Figure loss_picture(const StudyView& view, const Cells& cells, size_t axis) {
  const std::string& name = view.study.axes[axis].name;
  Figure figure{.id = "loss-by-" + name, .title = "Losses at the end against " + name};
  figure.y = {.title = "loss (nats per token)"};
  const auto loss = [](bool ood) {
    return [ood](const CellNumbers& cell) {
      return repeated(values_of(cell, [&](const SeedNumbers& s) { return ood ? s.end.ood : s.end.validation; }));
    };
  };
  return over_setting(view, cells, axis, std::move(figure), {{", in-domain", Dash::solid, loss(false)}, {", OOD", Dash::dash, loss(true)}});
}

/// The best value of the tuned setting.
Figure best_picture(const StudyView& view, const Cells& cells, size_t axis) {
  const std::string &name = view.study.axes[axis].name, &tuned = view.study.tuning->setting;
  Figure figure{.id = "best-by-" + name, .title = "Best " + tuned + " against " + name};
  figure.y = {.title = tuned + ", best by validation loss", .logarithmic = true};
  return over_setting(view, cells, axis, std::move(figure),
                      {{"", Dash::solid, [](const CellNumbers& cell) {
                          return repeated(std::vector<double>{cell.tuning.best.value_or(std::nan(""))});  // of one search: no band
                        }}});
}

/// Entropy of what queries read, as probed last (arXiv:2505.18522, figure 4).
Figure entropy_picture(const StudyView& view, const Cells& cells, size_t axis) {
  const std::string& name = view.study.axes[axis].name;
  Figure figure{.id = "entropy-by-" + name, .title = "Entropy of the reads against " + name};
  figure.y = {.title = "entropy, mean over layers and heads (nats)"};
  const auto entropy = [](const CellNumbers& cell) {
    return repeated(values_of(cell, [](const SeedNumbers& s) { return s.summary.end.entropy; }));
  };
  return over_setting(view, cells, axis, std::move(figure), {{"", Dash::solid, entropy}});
}

bool is_numeric(const StudyAxis& axis) {
  return axis.values.size() > 1 && std::all_of(axis.values.begin(), axis.values.end(), [](const StudyAxis::Value& v) { return v.number; });
}

}  // namespace

std::vector<Figure> figures_of(const StudyView& view, const std::vector<CellNumbers>& cells, const std::vector<LikeCells>& groups) {
  std::vector<Figure> figures;
  for (const std::string& name : view.study.figures) {
    if (name == "ood-against-pretraining")
      for (const LikeCells& group : groups) {
        figures.push_back(trajectory_picture(view, group.cells, group.words_of));
        if (!group.name.empty()) figures.back().id += "-" + group.name, figures.back().title += ": " + group.name;
      }
    if (name == "tuning" && view.study.tuning) figures.push_back(tuning_picture(view));
    for (size_t axis = 0; axis < view.study.axes.size(); ++axis) {
      if (!is_numeric(view.study.axes[axis])) continue;
      if (name == "loss-by-setting") figures.push_back(loss_picture(view, cells, axis));
      if (name == "best-by-setting" && view.study.tuning) figures.push_back(best_picture(view, cells, axis));
      if (name == "entropy-by-setting") figures.push_back(entropy_picture(view, cells, axis));
    }
  }
  std::erase_if(figures,
                [](const Figure& f) { return std::all_of(f.curves.begin(), f.curves.end(), [](const Curve& c) { return c.x.empty(); }); });
  return figures;
}

}  // namespace saccade

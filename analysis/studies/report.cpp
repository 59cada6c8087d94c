#include "analysis/studies/report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/figures/palette.h"
#include "analysis/runs/run_info.h"
#include "analysis/studies/report_entries.h"
#include "analysis/studies/report_equal_loss.h"
#include "analysis/studies/report_groups.h"
#include "analysis/studies/report_pages.h"
#include "analysis/studies/report_remarks.h"
#include "analysis/studies/report_scaling.h"
#include "analysis/studies/report_scores.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace {

using Json = nlohmann::json;
using Cells = std::vector<CellNumbers>;

constexpr double kWantedError = 0.005;  ///< nats: of a paired difference over sequences

std::vector<std::string> training_sources(const CellNumbers& cell) {
  std::vector<std::string> sources;
  for (const SeedNumbers& seed : cell.seeds)
    sources.push_back("runs/" + seed.run + ", the last 1 % of the steps up to " + std::to_string(seed.end.step) + ", training batches");
  return sources;
}

template <class F>
ReportEntry mean_entry(const CellNumbers& cell, F value) {
  return entry_of(repeated(values_of(cell, value)), sources_of(cell));
}

std::string losses_words(const StudyView& view, const ReportNumbers& numbers) {
  if (numbers.tokens == 0) return "Losses: nats per token, validation split, last evaluation of each run.";
  const std::string& split = view.study.evaluation.split;
  const std::string text =
      numbers.whole_split ? "the whole " + split + " split" : split + " split, " + std::to_string(numbers.tokens) + " tokens";
  return "Losses: nats per token, " + text + " of every domain, the checkpoint at each run's end.";
}

constexpr const char* kSequences =
    "± sequences: standard error of the loss over the sequences evaluated, which all rows share; differences are far more exact (table of "
    "differences).";

/// Of one seed's loss: the sequences are the same for all seeds, so more seeds do not lessen it.
template <class F>
ReportEntry sequence_error(const CellNumbers& cell, F value) {
  const double error = mean(values_of(cell, value));
  return {format("%.4f", error), error, sources_of(cell)};
}

/// Of generated tasks, and of runs of earlier versions, they are not known.
bool any_bits(const Cells& cells) {
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds)
      if (std::isfinite(seed.bits.validation) || std::isfinite(seed.bits.ood)) return true;
  return false;
}

ReportTable end_table(const StudyView& view, const ReportNumbers& numbers) {
  const Cells& cells = numbers.cells;
  ReportTable table{
      "end",
      "Losses at the end",
      {"", "seeds", "train loss", "perplexity", "in-domain loss", "in-domain ± sequences", "OOD loss", "OOD ± sequences", "tuning"},
      {},
      {losses_words(view, numbers), kIntervals, kSequences,
       "Train loss: mean of the last 1 % of the steps; perplexity: its exponential. Bits per byte of the text: means over the domains."}};
  std::set<std::string> domains;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds)
      for (const auto& [name, loss] : seed.end.domains) domains.insert(name);
  for (const std::string& domain : domains) table.header.push_back("OOD " + domain);
  const bool bits = any_bits(cells);
  if (bits) table.header.insert(table.header.end(), {"in-domain bits per byte", "OOD bits per byte"});
  for (const CellNumbers& cell : cells) {
    std::vector<ReportEntry> row{words(cell.name), count(static_cast<int64_t>(cell.seeds.size()))};
    row.push_back(entry_of(repeated(values_of(cell, [](const SeedNumbers& s) { return s.end.train; })), training_sources(cell)));
    row.push_back(entry_of(repeated(values_of(cell, [](const SeedNumbers& s) { return std::exp(s.end.train); })), training_sources(cell)));
    row.push_back(mean_entry(cell, [](const SeedNumbers& s) { return s.end.validation; }));
    row.push_back(sequence_error(cell, [](const SeedNumbers& s) { return s.validation_error; }));
    row.push_back(mean_entry(cell, [](const SeedNumbers& s) { return s.end.ood; }));
    row.push_back(sequence_error(cell, [](const SeedNumbers& s) { return s.ood_error; }));
    row.push_back(words(describe(cell.tuning)));
    for (const std::string& domain : domains)
      row.push_back(mean_entry(cell, [&](const SeedNumbers& s) {
        const auto at = s.end.domains.find(domain);
        return at == s.end.domains.end() ? std::nan("") : at->second;
      }));
    if (bits) row.push_back(mean_entry(cell, [](const SeedNumbers& s) { return s.bits.validation; }));
    if (bits) row.push_back(mean_entry(cell, [](const SeedNumbers& s) { return s.bits.ood; }));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// What a study's runs have taken can be compared: seconds only where all are of one device.
struct Comparable {
  std::string devices;  ///< one device, or why seconds do not compare
  bool seconds = false;
  std::vector<std::string> shared;  ///< shared_time()
};
Comparable comparable(const StudyView& view) {
  std::vector<RunInfo> infos;
  for (const WantedRun& wanted : view.wanted)
    if (wanted.status == WantedRun::Status::finished) infos.push_back(read_run_info(view.directory / "runs" / wanted.name));
  std::vector<const RunInfo*> runs;
  for (const RunInfo& info : infos) runs.push_back(&info);
  if (const std::string problem = different_devices(runs); !problem.empty()) return {problem, false, {}};
  Comparable can{infos.empty() ? "" : device_of(infos.front()), true, shared_time(runs)};
  for (std::string& sentence : can.shared) sentence.front() = 'S', sentence += ".";  // "seconds …"
  return can;
}

/// The amount that every seed has come to.
std::optional<double> equal_amount(const Cells& cells, Spent spent) {
  std::vector<Course> courses;
  for (const CellNumbers& cell : cells)
    for (const SeedNumbers& seed : cell.seeds) courses.push_back(seed.course(spent));
  return least_spent(courses);
}

/// A loss of a cell's seeds at an amount; NaN where a seed's first point lies behind it.
std::vector<double> at_amount(const CellNumbers& cell, Spent spent, double amount, bool ood) {
  return values_of(cell, [&](const SeedNumbers& s) {
    const auto at = losses_at(s.course(spent), amount);
    return !at ? std::nan("") : ood ? at->ood : at->pretraining;
  });
}

/// "ends" where all seeds had just ended there, else as read_from() says.
std::string read_at(const CellNumbers& cell, Spent spent, double amount) {
  const bool ends = std::all_of(cell.seeds.begin(), cell.seeds.end(), [&](const SeedNumbers& s) {
    return !s.course(spent).spent.empty() && s.course(spent).spent.back() <= 1.01 * amount;
  });
  return !cell.seeds.empty() && ends ? "ends" : read_from(cell);
}

std::string with_capital(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

ReportTable cost_equal_table(const Cells& cells, const Comparable& can, const std::string& unit) {
  ReportTable table{"equal-cost",
                    "Losses at equal tokens, FLOPs and seconds",
                    {"", "equal", "seeds", "in-domain loss", "OOD loss", "OOD against first", "read from"},
                    {},
                    {with_capital(unit) +
                         ", at what the run has taken that took least; between two points of a run linearly. Seeds whose first "
                         "point lies behind it are left out: an earlier branch would read them. " +
                         std::string(kIntervals),
                     can.seconds ? "Seconds are those of the training steps alone, on " + can.devices + "."
                                 : "No line for seconds: " + can.devices + "."}};
  table.notes.insert(table.notes.end(), can.shared.begin(), can.shared.end());
  for (const Spent spent : {Spent::tokens, Spent::flops, Spent::seconds}) {
    const std::optional<double> amount = equal_amount(cells, spent);
    if (!amount || (spent == Spent::seconds && !can.seconds)) continue;
    double first = std::nan("");
    for (const CellNumbers& cell : cells) {
      const Repeated inside = repeated(at_amount(cell, spent, *amount, false)), outside = repeated(at_amount(cell, spent, *amount, true));
      if (&cell == &cells.front()) first = outside.mean;
      table.rows.push_back({words(cell.name),
                            words(describe(spent, *amount)),
                            count(inside.count),
                            entry_of(inside, equal_sources(cell)),
                            entry_of(outside, equal_sources(cell)),
                            {format("%+.4f", outside.mean - first), outside.mean - first, equal_sources(cell)},
                            words(read_at(cell, spent, *amount))});
    }
  }
  return table;
}

/// A difference to the first cell, over the seeds that both have.
struct Difference {
  const CellNumbers* cell = nullptr;
  PairedTest test;
  double sequence_error = std::nan("");
  std::vector<std::string> sources;  ///< of every seed that both have
};

/// How many more seeds would tell the two apart, or why there is nothing to tell apart.
std::string seeds_wanted(const Difference& d, bool at_end) {
  if (d.test.difference.count > 0 || d.sources.empty()) return describe_more(d.test);
  return at_end ? "no finite loss" : "no point that both have passed";
}

using Evaluated = std::vector<std::shared_ptr<const SequenceLosses>>;

/// Standard error over the same sequences of a mean difference of seeds. All seeds have the same text, so that more of them make it no
/// smaller than the differences of their mean losses are: it is not divided by their root. NaN where one was not evaluated anew.
double error_over_sequences(const Evaluated& a, const Evaluated& b, bool ood) {
  const auto is_missing = [](const auto& losses) { return !losses; };
  if (a.empty() || std::any_of(a.begin(), a.end(), is_missing) || std::any_of(b.begin(), b.end(), is_missing)) return std::nan("");
  return paired_difference(mean_of(a), mean_of(b), ood).error;
}

/// value(seed, cell): of the seeds of `cell` and of the first one, in their comparison.
template <class F>
std::vector<Difference> differences_to_first(const Cells& cells, F value, bool ood, bool at_end) {
  std::vector<Difference> list;
  for (size_t i = 1; i < cells.size(); ++i) {
    std::vector<double> a, b;
    Difference d{&cells[i], {}, std::nan(""), {}};
    Evaluated own, of_first;
    for (const SeedNumbers& mine : cells[i].seeds)
      for (const SeedNumbers& other : cells.front().seeds) {
        if (mine.seed != other.seed) continue;
        a.push_back(value(mine, cells[i])), b.push_back(value(other, cells[i]));
        own.push_back(mine.losses), of_first.push_back(other.losses);
        d.sources.push_back((at_end ? mine.source() : equal_source(mine)) + " − " + (at_end ? other.source() : equal_source(other)));
      }
    d.test = paired_test(a, b);
    if (at_end) d.sequence_error = error_over_sequences(own, of_first, ood);
    list.push_back(std::move(d));
  }
  std::vector<PairedTest> tests;
  for (const Difference& d : list) tests.push_back(d.test);
  correct_by_holm(tests);
  for (size_t i = 0; i < list.size(); ++i) list[i].test = tests[i];
  return list;
}

void add_differences(ReportTable& table, const std::string& what, const std::vector<Difference>& list, bool whole_split, bool at_end) {
  for (const Difference& d : list) {
    const PairedTest& t = d.test;
    ReportEntry difference{format("%+.4f", t.difference.mean), t.difference.mean, d.sources, t.difference};
    if (t.difference.half_95) difference.text += " [±" + format("%.4f", *t.difference.half_95) + "]";
    const auto p = [](const std::optional<double>& v) { return ReportEntry{v ? format("%.3g", *v) : "–", v.value_or(std::nan("")), {}}; };
    ReportEntry error{format("%.4f", d.sequence_error), d.sequence_error, {}};
    if (d.sequence_error > kWantedError)
      error.text += whole_split ? " (above 0.005 on the whole split)" : " (above 0.005: evaluate more tokens)";
    table.rows.push_back({words(d.cell->name), words(what), count(t.difference.count), difference, p(t.p), p(t.p_holm), error,
                          words(seeds_wanted(d, at_end))});
  }
}

ReportTable difference_table(const StudyView& view, const Cells& cells, bool whole_split, const Comparable& can,
                             const LossWords& words_of) {
  ReportTable table{
      "differences",
      "Differences to " + cells.front().name,
      {"", "loss", "pairs", "difference", "p", "p (Holm)", "error over sequences", "seeds"},
      {},
      {"Difference: mean over the seeds that both have, in " + words_of.unit +
       ", [±] half of its 95 % interval (Student t, for one line alone); "
       "p: "
       "paired t test, two-sided; Holm's correction over the lines of one loss. Seeds: how many more would bring "
       "the corrected p below 0.05, if mean and deviation stayed as they are. Error over sequences: standard error of the difference on "
       "the same sequences, where they were evaluated at the ends. OOD at equal loss: each pair at the lowest pre-training loss that all "
       "seeds of both have passed (" +
       pretraining_words(words_of, equal_split(cells)) + ")."}};
  const auto add = [&](const std::string& what, bool ood, bool at_end, auto value) {
    add_differences(table, what, differences_to_first(cells, value, ood, at_end), whole_split, at_end);
  };
  using Seed = SeedNumbers;
  using Cell = CellNumbers;
  add("in-domain", false, true, [](const Seed& s, const Cell&) { return s.end.validation; });
  add("OOD", true, true, [](const Seed& s, const Cell&) { return s.end.ood; });
  add("OOD at equal loss", true, false, [&](const Seed& s, const Cell& cell) {
    const std::optional<double> loss = equal_loss(cells.front(), cell);
    return loss ? ood_at(s.trajectory, *loss).value_or(std::nan("")) : std::nan("");
  });
  table.notes.push_back("saccade study seeds " + view.study.name +
                        " N --cell NAME … trains N more seeds of cells; the first cell's are needed "
                        "for pairs.");
  if (!view.study.equal || view.study.equal->what != StudyEqual::What::seconds || !can.seconds) return table;
  if (const auto amount = equal_amount(cells, Spent::seconds))
    for (const bool ood : {false, true})
      add(ood ? "OOD at equal seconds" : "in-domain at equal seconds", ood, false, [&](const Seed& s, const Cell&) {
        const auto at = losses_at(s.course(Spent::seconds), *amount);
        return !at ? std::nan("") : ood ? at->ood : at->pretraining;
      });
  return table;
}

/// The runs that a value was judged by.
std::vector<std::string> tuning_sources(const StudyView& view, size_t cell, double value) {
  std::vector<std::string> sources;
  if (!view.study.tuning) return sources;
  const std::vector<int64_t>& seeds = view.study.tuning->seeds;
  for (const size_t at : view.views[cell].wanted) {
    const WantedRun& wanted = view.wanted[at];
    if (wanted.run.tuned == value && wanted.there && std::find(seeds.begin(), seeds.end(), wanted.run.seed) != seeds.end())
      sources.push_back("runs/" + wanted.name + ", step " + std::to_string(wanted.there->end.step) + ", validation split");
  }
  return sources;
}

std::string searched_seeds(const StudyView& view) {
  const size_t seeds = view.study.tuning ? view.study.tuning->seeds.size() : 1;
  if (seeds == 1)
    return "Validation losses (nats per token) of the runs at one seed; nothing else chooses. That seed is one of those reported, which "
           "favours its validation loss as the least of several.";
  return "Validation losses (nats per token), the mean over " + std::to_string(seeds) +
         " seeds; nothing else chooses. Those seeds are among those reported, which favours their validation loss as the least of several.";
}

ReportTable tuning_table(const StudyView& view) {
  ReportTable table{"tuning", "The search for the best value", {"", "result"}, {}, {searched_seeds(view)}};
  std::set<double> values;
  for (const CellView& cell : view.views)
    for (const TriedValue& tried : cell.tuning.tried) values.insert(tried.value);
  for (const double value : values) table.header.push_back(plain_number(value));
  for (size_t i = 0; i < view.cells.size(); ++i) {
    std::vector<ReportEntry> row{words(view.cells[i].name), words(describe(view.views[i].tuning))};
    for (const double value : values) {
      ReportEntry entry = words("");
      for (const TriedValue& tried : view.views[i].tuning.tried)
        if (tried.value == value) entry = {std::isinf(tried.loss) ? "diverged" : format("%.4f", tried.loss), tried.loss, {}};
      entry.sources = tuning_sources(view, i, value);
      row.push_back(std::move(entry));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string equal_words(const Study& study) {
  if (!study.equal) return "Nothing is held equal but what the base and the axes give.";
  switch (study.equal->what) {
    case StudyEqual::What::parameters: return "Held equal: parameters, within 0.5 %.";
    case StudyEqual::What::state: return "Held equal: numbers of state per token of context, within 2 %.";
    case StudyEqual::What::flops: return "Held equal: FLOPs, to the nearest step.";
    case StudyEqual::What::tokens: return "Held equal: tokens, to the nearest step.";
    case StudyEqual::What::seconds: return "Held equal: seconds of training, where losses are read at those (losses at equal seconds).";
  }
  return "";
}

/// The means of a cell's seeds that say what is equal.
ComparisonRow cost_of(const CellNumbers& cell) {
  const auto mean_of = [&](auto value) { return mean(values_of(cell, value)); };
  ComparisonRow row;
  row.parameters = cell.seeds.front().summary.parameters;
  if (const double others = cell.seeds.front().summary.parameters_without_embeddings; std::isfinite(others))
    row.embedding_parameters = row.parameters - static_cast<int64_t>(others);
  row.tokens = mean_of([](const SeedNumbers& s) { return static_cast<double>(s.summary.tokens); });
  row.flops = mean_of([](const SeedNumbers& s) { return s.summary.flops; });
  row.seconds = mean_of([](const SeedNumbers& s) { return s.summary.seconds; });
  row.state_bytes = cell.seeds.front().summary.state_bytes_per_token;
  return row;
}

ReportTable cost_table(const StudyView& view, const Cells& cells, const Comparable& can) {
  ReportTable table{
      "cost",
      "What the runs took",
      {"", "parameters", "without embeddings", "tokens", "FLOPs", "state (bytes per token)", "seconds"},
      {},
      {equal_words(view.study),
       "Mean of a run; tokens, FLOPs and seconds are those of the training steps, branches included. Device: " + can.devices + "."}};
  table.notes.insert(table.notes.end(), can.shared.begin(), can.shared.end());
  std::vector<ComparisonRow> rows;
  for (const CellNumbers& cell : cells) {
    if (!cell.seeds.empty()) rows.push_back(cost_of(cell));
    const auto column = [&](const char* pattern, auto value) {
      const double v = mean(values_of(cell, value));
      return ReportEntry{format(pattern, v), v, sources_of(cell)};
    };
    table.rows.push_back({words(cell.name), column("%.0f", [](const SeedNumbers& s) { return static_cast<double>(s.summary.parameters); }),
                          column("%.0f", [](const SeedNumbers& s) { return s.summary.parameters_without_embeddings; }),
                          column("%.0f", [](const SeedNumbers& s) { return static_cast<double>(s.summary.tokens); }),
                          column("%.3e", [](const SeedNumbers& s) { return s.summary.flops; }),
                          column("%.0f", [](const SeedNumbers& s) { return s.summary.state_bytes_per_token; }),
                          column("%.1f", [](const SeedNumbers& s) { return s.summary.seconds; })});
  }
  if (const std::string words_of_all = describe_equality(rows); !words_of_all.empty()) table.notes.push_back(words_of_all);
  return table;
}

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

std::vector<Figure> figures_of(const StudyView& view, const Cells& cells, const std::vector<LikeCells>& groups) {
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

std::vector<ReportTable> tables_of(const StudyView& view, const ReportNumbers& numbers, const StudyScores& scores,
                                   const std::vector<LikeCells>& groups) {
  const Cells& cells = numbers.cells;
  const Comparable can = comparable(view);
  std::vector<ReportTable> tables;
  const auto of_each_group = [&](auto table_of) {
    for (const LikeCells& group : groups) {
      tables.push_back(table_of(group.cells, group.words_of));
      if (!group.name.empty()) tables.back().id += "-" + group.name, tables.back().title += ": " + group.name;
    }
  };
  for (const std::string& name : view.study.tables) {
    if (name == "end") tables.push_back(end_table(view, numbers));
    if (name == "equal-loss") of_each_group(equal_loss_table);
    if (name == "equal-cost")
      of_each_group([&](const Cells& own, const LossWords& words_of) { return cost_equal_table(own, can, words_of.unit); });
    if (name == "differences" && cells.size() > 1)
      of_each_group(
          [&](const Cells& own, const LossWords& words_of) { return difference_table(view, own, numbers.whole_split, can, words_of); });
    if (name == "tuning") tables.push_back(tuning_table(view));
    if (name == "cost") tables.push_back(cost_table(view, cells, can));
    if (name == "scaling")
      if (std::optional<ReportTable> table = scaling_table(view, cells)) tables.push_back(std::move(*table));
    if (name == "scores")
      if (std::optional<ReportTable> table = scores_table(view, scores)) tables.push_back(std::move(*table));
  }
  return tables;
}

Json runs_json(const StudyView& view) {
  Json runs = Json::array();
  for (const WantedRun& wanted : view.wanted) {
    if (!wanted.there) continue;
    Json one{{"folder", "runs/" + wanted.name},
             {"identity", wanted.run.identity},
             {"state", to_string(wanted.there->state)},
             {"step", wanted.there->step},
             {"seed", wanted.run.seed}};
    try {
      const Json provenance = read_run_info(view.directory / "runs" / wanted.name).provenance;
      for (const char* key : {"code_version", "device", "gpu", "precision", "corpus_hash", "tokenizer_hash", "config_hash"})
        if (provenance.contains(key)) one[key] = provenance.at(key);
    } catch (const Error& error) {
      one["problem"] = error.what();
    }
    runs.push_back(std::move(one));
  }
  return runs;
}

/// Runs that differ in device, precision or code are told.
void add_unequal(StudyReport& report) {
  for (const char* key : {"device", "precision", "code_version", "corpus_hash", "tokenizer_hash"}) {
    std::set<std::string> values;
    for (const Json& run : report.runs)
      if (run.contains(key)) values.insert(key == std::string_view("device") && run.contains("gpu") ? run.at("gpu") : run.at(key));
    if (values.size() < 2) continue;
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
    report.remarks.push_back("The runs differ in " + std::string(key) + ": " + text + ".");
  }
}

}  // namespace

StudyReport make_report(const StudyView& view, const std::function<void(const std::string&)>& say) {
  StudyReport report;
  report.name = view.study.name, report.question = view.study.question, report.source = view.study.source;
  report.directory = view.directory.string();
  StudyEvaluations evaluations(view, say);
  const ReportNumbers numbers = report_numbers(view, evaluations);
  const Cells& cells = numbers.cells;
  if (std::all_of(cells.begin(), cells.end(), [](const CellNumbers& cell) { return cell.seeds.empty(); }))
    throw DataError(view.directory.string() + ": no run of this study has ended that a report could show");
  const std::vector<LikeCells> groups = like_cells(view, cells);
  report.remarks = remarks_of(view, cells, groups);
  for (const std::string& run : numbers.left_out)
    report.remarks.push_back("Left out, since it cannot be evaluated on the " + view.study.evaluation.split + " split: " + run + ".");
  const StudyScores scores = study_scores(view, say, std::numeric_limits<double>::infinity());
  report.remarks.insert(report.remarks.end(), scores.remarks.begin(), scores.remarks.end());
  if (!numbers.short_of.empty()) report.remarks.push_back("The losses of the ends are of no more text, since " + numbers.short_of + ".");
  report.tables = tables_of(view, numbers, scores, groups);
  report.figures = figures_of(view, cells, groups);
  RecipePages recipes = recipe_pages(view, cells);
  report.remarks.insert(report.remarks.end(), recipes.remarks.begin(), recipes.remarks.end());
  report.pages = std::move(recipes.pages);
  report.runs = runs_json(view);
  add_unequal(report);
  return report;
}

}  // namespace saccade

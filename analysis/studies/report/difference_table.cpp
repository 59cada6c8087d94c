#include "analysis/studies/report/difference_table.h"

#include <algorithm>
#include <cmath>

#include "analysis/studies/report/equal_cost_table.h"

namespace saccade {

namespace {

using Cells = std::vector<CellNumbers>;

constexpr double kWantedError = 0.005;  ///< nats: of a paired difference over sequences

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

}  // namespace

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

}  // namespace saccade

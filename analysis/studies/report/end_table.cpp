#include "analysis/studies/report/end_table.h"

#include <cmath>
#include <set>

#include "analysis/runs/natural_order.h"

namespace saccade {

namespace {

using Cells = std::vector<CellNumbers>;

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
      numbers.whole_split ? "the whole " + split + " split" : split + " split, up to " + std::to_string(numbers.tokens) + " tokens";
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

}  // namespace

ReportTable end_table(const StudyView& view, const ReportNumbers& numbers) {
  const Cells& cells = numbers.cells;
  ReportTable table{
      "end",
      "Losses at the end",
      {"", "seeds", "train loss", "perplexity", "in-domain loss", "in-domain ± sequences", "OOD loss", "OOD ± sequences", "tuning"},
      {},
      {losses_words(view, numbers), kIntervals, kSequences,
       "Train loss: mean of the last 1 % of the steps; perplexity: its exponential. Bits per byte of the text: means over the domains."}};
  const auto in_order = [](const std::string& a, const std::string& b) { return natural_before(a, b); };
  std::set<std::string, decltype(in_order)> domains;  // length-8192 before length-32768
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

}  // namespace saccade

#include "analysis/studies/report/cost_table.h"

#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/run_info.h"

namespace saccade {

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

namespace {

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

}  // namespace

ReportTable cost_table(const StudyView& view, const std::vector<CellNumbers>& cells, const Comparable& can) {
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

}  // namespace saccade

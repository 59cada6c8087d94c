#include "analysis/studies/report/report.h"

#include <algorithm>
#include <set>

#include "analysis/runs/run_info.h"
#include "analysis/studies/report/cost_table.h"
#include "analysis/studies/report/difference_table.h"
#include "analysis/studies/report/end_table.h"
#include "analysis/studies/report/equal_cost_table.h"
#include "analysis/studies/report/equal_loss_table.h"
#include "analysis/studies/report/like_cells.h"
#include "analysis/studies/report/pictures.h"
#include "analysis/studies/report/recipe_pages.h"
#include "analysis/studies/report/remarks.h"
#include "analysis/studies/report/scaling_table.h"
#include "analysis/studies/report/scores_table.h"
#include "analysis/studies/report/tuning_table.h"
#include "kernels/engine/error.h"

namespace saccade {

namespace {

using Json = nlohmann::json;
using Cells = std::vector<CellNumbers>;

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
      of_each_group([&](const Cells& own, const LossWords& words_of) { return equal_cost_table(own, can, words_of.unit); });
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

StudyReport make_report(const StudyView& view, const std::function<void(const std::string&)>& say, const StudyWorkers& workers) {
  StudyReport report;
  report.name = view.study.name, report.question = view.study.question, report.source = view.study.source;
  report.directory = view.directory.string();
  constexpr double kAnyTime = std::numeric_limits<double>::infinity();
  StudyEvaluations evaluations(view, say, kAnyTime, workers);
  const ReportNumbers numbers = report_numbers(view, evaluations);
  const Cells& cells = numbers.cells;
  if (std::all_of(cells.begin(), cells.end(), [](const CellNumbers& cell) { return cell.seeds.empty(); }))
    throw DataError(view.directory.string() + ": no run of this study has ended that a report could show");
  const std::vector<LikeCells> groups = like_cells(view, cells);
  report.remarks = remarks_of(view, cells, groups);
  for (const std::string& run : numbers.left_out)
    report.remarks.push_back("Left out, since it cannot be evaluated on the " + view.study.evaluation.split + " split: " + run + ".");
  for (const std::filesystem::path& file : evaluations.renewed())
    report.remarks.push_back(file.string() + " was damaged, and has been made anew from the checkpoint.");
  const StudyScores scores = study_scores(view, say, kAnyTime, workers);
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

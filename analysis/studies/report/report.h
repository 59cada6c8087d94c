#pragma once
#include "analysis/comparison/statistics.h"
#include "analysis/figures/page.h"
#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_workers.h"

namespace saccade {

/// A number, or words, of a table and where it comes from.
struct ReportEntry {
  std::string text;
  double value = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> sources = {};  ///< "runs/NAME, step 200, validation split"; empty for words
  std::optional<Repeated> repeated = {};  ///< of a mean over seeds: how many, deviation, interval
};
struct ReportTable {
  std::string id, title;
  std::vector<std::string> header;
  std::vector<std::vector<ReportEntry>> rows;
  std::vector<std::string> notes = {};
};
/// A figure of a paper, made by its recipe.
struct ReportPage {
  FigurePage page;
  std::vector<std::string> formats;  ///< that the recipe writes
};
struct StudyReport {
  std::string name, question, source, directory;
  std::vector<std::string> remarks;  ///< what is missing, untuned or mid-schedule, and what keeps runs from being compared
  std::vector<ReportTable> tables;
  std::vector<Figure> figures;
  std::vector<ReportPage> pages;
  nlohmann::json runs;  ///< each run: folder, identity, step, code version, device
};

/// Tables and figures of what has ended. Losses are in nats per token, of the checkpoints at the ends evaluated as the study says
/// (StudyEvaluation; kept in STUDY/evaluations) or else of the last evaluations that the runs recorded. Rows with different tokenizers are
/// compared in bits per byte. Losses at equal pre-training loss are those of
/// the ends of cooldown branches, else of evaluations within the schedule, and then called mid-schedule. Scores on the study's tasks that
/// are missing are made (study_scores), those and evaluations by `workers`.
StudyReport make_report(const StudyView& view, const std::function<void(const std::string&)>& say = {}, const StudyWorkers& workers = {});

std::string to_markdown(const StudyReport& report);
nlohmann::json to_json(const StudyReport& report);
/// report.md, report.html, and of every table TABLE.csv (an entry a line with its sources, the number of its table's line, and of means
/// over seeds their count, deviation and half of the 95 % interval) and TABLE.tex, of every figure FIGURE.svg and FIGURE.csv. Throws
/// DataError. Pages as RECIPE.svg, RECIPE.csv and what else their recipes write. `draw` writes a figure as SVG, `draw_page` a page by its
/// suffix; without them, or where they throw, the page says why there are no pictures, and the CSV is there.
struct WrittenReport {
  std::vector<std::filesystem::path> files;
  std::string not_drawn;  ///< why a figure is missing that `draw` was to write; empty otherwise
};
WrittenReport write_report(const StudyReport& report, const std::filesystem::path& folder,
                           const std::function<void(const Figure&, const std::filesystem::path&)>& draw = {},
                           const std::function<void(const FigurePage&, const std::filesystem::path&)>& draw_page = {});

}  // namespace saccade

#include "analysis/figures/loss_table.h"

#include <algorithm>

#include "analysis/comparison/number_text.h"
#include "analysis/figures/count_text.h"

namespace saccade {
namespace {

std::string mean_text(const ComparedLoss& loss) {
  return number_text("%.3f", loss.mean) + (loss.deviation ? " ± " + number_text("%.3f", loss.deviation) : "");
}

std::string p_text(const ComparedLoss& loss) {
  if (!loss.test || !loss.test->p_holm) return "–";
  return *loss.test->p_holm < 0.001 ? "< 0.001" : number_text("%.3f", loss.test->p_holm);
}

/// A column of losses, and of p where any row has one.
struct LossColumn {
  std::string name;
  ComparedLoss ComparisonRow::*loss;
  bool has_p = false;
};

/// What the column of in-domain losses at the end is called.
std::string name_at_end(const PretrainingLoss& loss) {
  if (loss.kind == PretrainingLoss::Kind::train) return "training loss";
  return loss.kind == PretrainingLoss::Kind::weighted ? "validation, by tokens" : "validation";
}

std::vector<LossColumn> columns_of(const Comparison& found, bool all_mid_schedule, const EndEvaluations* ends) {
  std::string equal = found.equal_loss ? "OOD at " + number_text("%.3f", found.equal_loss) : "OOD at equal loss";
  if (all_mid_schedule) equal += " (mid-schedule)";
  std::vector<LossColumn> columns{
      {ends ? "in-domain, " + ends->split() + " split" : name_at_end(found.pretraining), &ComparisonRow::id_at_end},
      {ends ? "OOD, " + ends->split() + " split" : "OOD", &ComparisonRow::ood_at_end},
      {equal, &ComparisonRow::ood_at_equal}};
  for (LossColumn& column : columns)
    column.has_p = std::any_of(found.rows.begin(), found.rows.end(), [&](const ComparisonRow& row) {
      const std::optional<PairedTest>& test = (row.*column.loss).test;
      return test && test->p_holm;
    });
  return columns;
}

}  // namespace

PageTable loss_table(const RunSet& runs, const LossTableChoice& choice) {
  const Comparison found = choice.ends
                               ? compare_at_ends(runs, *choice.ends, choice.at_loss, choice.domain, choice.pretraining, choice.tuning)
                               : compare(runs, choice.at_loss, choice.domain, {}, choice.pretraining, choice.tuning);
  const auto is_mid = [](const ComparisonRow& row) { return read_from(row) == "mid-schedule"; };
  const auto mid = std::count_if(found.rows.begin(), found.rows.end(), is_mid);
  const bool all_mid = mid > 0 && std::none_of(found.rows.begin(), found.rows.end(), [](const auto& row) { return row.branch_ends; });
  const std::vector<LossColumn> columns = columns_of(found, all_mid, choice.ends);
  PageTable table{choice.title, {"", "seeds", "parameters", "tokens/s"}, {}};
  bool any_p = false;
  for (const LossColumn& column : columns) {
    table.header.push_back(column.name);
    if (column.has_p) table.header.emplace_back("p"), any_p = true;
  }
  if (table.title.empty()) table.title = "Losses in nats per token, mean ± sample standard deviation over seeds";
  for (const ComparisonRow& row : found.rows) {
    std::vector<std::string> line{row.title, std::to_string(row.seeds.size()), count_text(static_cast<double>(row.parameters)),
                                  count_text(row.tokens_per_second)};
    for (const LossColumn& column : columns) {
      const ComparedLoss& loss = row.*column.loss;
      const bool marked = column.loss == &ComparisonRow::ood_at_equal && !all_mid && is_mid(row);
      line.push_back(mean_text(loss) + (marked ? " (mid-schedule)" : ""));
      if (column.has_p) line.push_back(p_text(loss));
    }
    table.rows.push_back(std::move(line));
  }
  if (any_p) table.notes.emplace_back("p: paired t test of the seeds in common with the first row, corrected for the other rows (Holm).");
  if (choice.pretraining.kind != PretrainingLoss::Kind::validation)
    table.notes.push_back("Equal pre-training loss: " + describe(choice.pretraining) + ".");
  if (choice.ends)
    table.notes.push_back("Losses at the end: " + choice.ends->split() + " split, up to " +
                          count_text(static_cast<double>(choice.ends->tokens())) +
                          " tokens of every domain; what is at equal loss is of the validation split.");
  if (choice.tuning) table.notes.insert(table.notes.end(), found.tuning.begin(), found.tuning.end());
  table.notes.insert(table.notes.end(), found.warnings.begin(), found.warnings.end());
  return table;
}

}  // namespace saccade

#include "analysis/comparison/run_totals.h"

#include <algorithm>
#include <cmath>

#include "analysis/comparison/statistics.h"

namespace saccade {
namespace {

/// What losses depend on besides the model.
nlohmann::json text_of(const Run& run) {
  nlohmann::json text = nlohmann::json::object();
  const auto data = run.info().config.find("data");
  if (data == run.info().config.end() || !data->is_object()) return text;
  for (const char* key : {"corpus", "train", "ood", "tokenizer"})
    if (data->contains(key)) text[key] = data->at(key);
  return text;
}

LossTotal total_of(const std::vector<const Run*>& runs, const char* series) {
  std::vector<double> values;
  for (const Run* run : runs)
    if (const Series* found = run->find(series); found && !found->value.empty() && std::isfinite(found->value.back()))
      values.push_back(found->value.back());
  LossTotal total;
  if (values.empty()) return total;
  const Repeated all = repeated(values);
  total.count = all.count, total.mean = all.mean;
  total.best = *std::min_element(values.begin(), values.end());
  if (all.deviation) total.deviation = *all.deviation;
  return total;
}

}  // namespace

RunTotals totals_of(const std::vector<const Run*>& runs) {
  std::vector<const Run*> ended;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(ended),
               [](const Run* run) { return run->info().state == RunState::finished && (run->detail().outline || run->damage().empty()); });
  RunTotals totals;
  if (ended.empty()) return totals;
  const nlohmann::json text = text_of(*ended.front());
  totals.comparable = std::all_of(ended.begin(), ended.end(), [&](const Run* run) { return text_of(*run) == text; });
  totals.one_setting = std::all_of(ended.begin(), ended.end(), [&](const Run* run) { return run->setting() == ended.front()->setting(); });
  if (!totals.comparable) return totals;
  totals.loss = total_of(ended, "validation/loss");
  totals.ood = total_of(ended, "ood/loss");
  return totals;
}

}  // namespace saccade

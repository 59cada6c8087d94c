#include "analysis/runs/history.h"

#include <algorithm>
#include <cmath>

namespace saccade {
namespace {

/// Mean over D domains and its standard error, sqrt(Σ e_d²) / D: their texts are independent. A mean that lacks a domain would be
/// another quantity: one NaN makes it NaN.
struct DomainMean {
  int64_t domains = 0;
  double sum = 0, squares = 0;
  void add(const DomainLoss& loss) {
    ++domains;
    sum += loss.loss;
    squares += loss.standard_error * loss.standard_error;
  }
  double loss() const { return sum / static_cast<double>(domains); }
  double standard_error() const { return std::sqrt(squares) / static_cast<double>(domains); }
};

}  // namespace

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

void RunHistory::apply(const Record& record) {
  const std::string type = record.at("type").get<std::string>();
  if (type == "step") add(step_from(record));
  if (type == "evaluation") add(evaluation_from(record));
  if (type == "statistics") add(statistics_from(record));
  if (type == "resume") rewind(record.at("step").get<int64_t>());
}

const Series* RunHistory::find(const std::string& name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &series_[at->second];
}

void RunHistory::add(const std::string& name, const char* unit, const Position& at, double value, double error) {
  const auto [entry, fresh] = index_.try_emplace(name, series_.size());
  if (fresh) series_.push_back({name, unit, {}, {}, {}, {}, {}});
  Series& series = series_[entry->second];
  series.step.push_back(static_cast<double>(at.step));
  series.tokens.push_back(static_cast<double>(at.tokens));
  series.flops.push_back(at.flops);
  series.seconds.push_back(at.seconds);
  if (!series.error.empty() || !std::isnan(error)) {
    series.error.resize(series.value.size(), std::nan(""));
    series.error.push_back(error);
  }
  series.value.push_back(value);
}

void RunHistory::add(const StepRecord& step) {
  if (step.step <= step_) rewind(step.step - 1);  // a resume whose own record is lost
  const Position at{step.step, step.tokens, step.flops, step.seconds};
  add("train/loss", "nats", at, step.loss);
  add("learning_rate", "1", at, step.learning_rate);
  add("gradient_norm", "1", at, step.gradient_norm);
  add("tokens_per_second", "tokens/s", at, step.tokens_per_second);
  step_ = step.step;
}

void RunHistory::add(const EvaluationRecord& evaluation) {
  DomainMean inside, outside;
  for (const DomainLoss& loss : evaluation.losses) {
    add((loss.ood ? "ood/loss/" : "validation/loss/") + loss.domain, "nats", evaluation.at, loss.loss, loss.standard_error);
    (loss.ood ? outside : inside).add(loss);
    if (loss.ood && std::find(ood_domains_.begin(), ood_domains_.end(), loss.domain) == ood_domains_.end())
      ood_domains_.push_back(loss.domain);
  }
  if (inside.domains > 0) add("validation/loss", "nats", evaluation.at, inside.loss(), inside.standard_error());
  if (outside.domains > 0) add("ood/loss", "nats", evaluation.at, outside.loss(), outside.standard_error());
}

void RunHistory::add(StatisticsRecord statistics) {
  for (const HeadStatistic& s : statistics.statistics)
    add(s.name + (s.layer < 0 ? "" : "/layer" + std::to_string(s.layer)), s.unit.c_str(), statistics.at, mean_of(s.heads));
  statistics_.push_back(std::move(statistics));
}

void RunHistory::rewind(int64_t step) {
  for (Series& series : series_) {
    const auto keep = std::upper_bound(series.step.begin(), series.step.end(), static_cast<double>(step)) - series.step.begin();
    for (auto* column : {&series.step, &series.tokens, &series.flops, &series.seconds, &series.value})
      column->resize(static_cast<size_t>(keep));
    if (!series.error.empty()) series.error.resize(static_cast<size_t>(keep));
  }
  while (!statistics_.empty() && statistics_.back().at.step > step) statistics_.pop_back();
  step_ = std::max<int64_t>(0, std::min(step_, step));
}

}  // namespace saccade

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
  if (type == "memory") add(memory_from(record));
  if (type == "task") add(task_scores_from(record));
  if (type == "resume") rewind(record.at("step").get<int64_t>());
}

const Series* RunHistory::find(const std::string& name) const {
  const auto at = index_.find(name);
  if (at != index_.end()) return &series_[at->second];
  if (!steps_ || !name.ends_with("/mean")) return nullptr;
  for (const Thinning& thinning : steps_->thinning)
    if (thinning.thins() && thinning.means().name == name) return &thinning.means();
  return nullptr;
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

/// change(series) of the first of the four, whose axes the others then share. They let go of them meanwhile: what is shared is copied
/// before it is changed.
template <class F>
void RunHistory::of_one_axes(F&& change) {
  const auto others = [&](auto&& set) {
    for (size_t i = 1; i < steps_->place.size(); ++i)
      for (Column Series::*axis : {&Series::step, &Series::tokens, &Series::flops, &Series::seconds})
        set(series_[steps_->place[i]].*axis, axis);
  };
  Series& first = series_[steps_->place.front()];
  others([](Column& column, auto) { column.clear(); });
  change(first);
  others([&](Column& column, auto axis) { column = first.*axis; });
}

void RunHistory::add(const StepRecord& step) {
  if (step.step <= step_) rewind(step.step - 1);  // a resume whose own record is lost
  static constexpr std::array<std::pair<const char*, const char*>, 4> kSeries{
      {{"train/loss", "nats"}, {"learning_rate", "1"}, {"gradient_norm", "1"}, {"tokens_per_second", "tokens/s"}}};
  const std::array values{step.loss, step.learning_rate, step.gradient_norm, step.tokens_per_second};
  if (!steps_) {
    steps_.emplace();
    for (size_t i = 0; i < kSeries.size(); ++i) {
      const auto [entry, fresh] = index_.try_emplace(kSeries[i].first, series_.size());
      if (fresh) series_.push_back({kSeries[i].first, kSeries[i].second, {}, {}, {}, {}, {}});
      steps_->place[i] = entry->second;
      steps_->thinning[i] = Thinning(most_points_, kSeries[i].first, kSeries[i].second);
    }
  }
  const auto add_moment = [&](Series& series) {
    series.step.push_back(static_cast<double>(step.step));
    series.tokens.push_back(static_cast<double>(step.tokens));
    series.flops.push_back(step.flops);
    series.seconds.push_back(step.seconds);
  };
  if (most_points_ == 0) of_one_axes(add_moment);
  for (size_t i = 0; i < values.size(); ++i) {
    Series& series = series_[steps_->place[i]];
    if (most_points_ > 0) add_moment(series);
    series.value.push_back(values[i]);
    steps_->thinning[i].added(series);
  }
  note_loss(step);
  step_ = step.step;
}

/// Thinned series keep what is finite, so that its lack is kept here.
void RunHistory::note_loss(const StepRecord& step) {
  constexpr size_t kMost = 1000;  // more cannot be told apart in any chart
  const bool finite = std::isfinite(step.loss);
  if (finite) {
    if (!loss_gaps_.empty() && std::isnan(loss_gaps_.back().beside)) loss_gaps_.back().beside = step.loss;
    finite_loss_ = step.loss;
  } else if (!in_loss_gap_ && loss_gaps_.size() < kMost) {
    loss_gaps_.push_back({{step.step, step.tokens, step.flops, step.seconds}, !std::isnan(step.loss), finite_loss_.value_or(std::nan(""))});
  }
  in_loss_gap_ = !finite;
}

void RunHistory::add(const EvaluationRecord& evaluation) {
  DomainMean inside, outside;
  std::vector<double> right_inside, right_outside;  // of a generated task
  for (const DomainLoss& loss : evaluation.losses) {
    add((loss.ood ? "ood/loss/" : "validation/loss/") + loss.domain, "nats", evaluation.at, loss.loss, loss.standard_error);
    (loss.ood ? outside : inside).add(loss);
    if (!std::isnan(loss.accuracy)) {
      add((loss.ood ? "ood/accuracy/" : "validation/accuracy/") + loss.domain, "1", evaluation.at, loss.accuracy);
      (loss.ood ? right_outside : right_inside).push_back(loss.accuracy);
    }
    if (loss.ood && std::find(ood_domains_.begin(), ood_domains_.end(), loss.domain) == ood_domains_.end())
      ood_domains_.push_back(loss.domain);
  }
  if (inside.domains > 0) add("validation/loss", "nats", evaluation.at, inside.loss(), inside.standard_error());
  if (outside.domains > 0) add("ood/loss", "nats", evaluation.at, outside.loss(), outside.standard_error());
  if (!right_inside.empty()) add("validation/accuracy", "1", evaluation.at, mean_of(right_inside));
  if (!right_outside.empty()) add("ood/accuracy", "1", evaluation.at, mean_of(right_outside));
  last_evaluation_ = evaluation;
}

void RunHistory::add(StatisticsRecord statistics) {
  for (const HeadStatistic& s : statistics.statistics)
    add(s.name + (s.layer < 0 ? "" : "/layer" + std::to_string(s.layer)), s.unit.c_str(), statistics.at, mean_of(s.heads));
  statistics_.push_back(std::move(statistics));
  constexpr size_t kKept = 16;  // more than a resume takes back
  if (most_points_ > 0 && statistics_.size() > 2 * kKept) statistics_.erase(statistics_.begin(), statistics_.end() - kKept);
}

void RunHistory::add(const MemoryRecord& memory) {
  constexpr double kMebibyte = 1 << 20;
  add("device_memory", "MiB", memory.at, static_cast<double>(memory.device_bytes) / kMebibyte);
  if (memory.process_bytes > 0) add("process_memory", "MiB", memory.at, static_cast<double>(memory.process_bytes) / kMebibyte);
}

void RunHistory::shrink() {
  const auto shrunk = [](Series& series) {
    for (Column* column : {&series.step, &series.tokens, &series.flops, &series.seconds, &series.value, &series.error}) column->shrink();
  };
  for (Series& series : series_) shrunk(series);
  if (steps_ && most_points_ == 0) of_one_axes(shrunk);
  if (steps_)
    for (Thinning& thinning : steps_->thinning) thinning.shrink();
  series_.shrink_to_fit();
  statistics_.shrink_to_fit();
}

void RunHistory::add(TaskScoreRecord scores) {
  const auto is_beside = [&](const TaskScoreRecord& known) { return known.task == scores.task && known.step == scores.step; };
  std::erase_if(task_scores_, [&](const TaskScoreRecord& known) { return is_beside(known) && known.options == scores.options; });
  task_scores_.push_back(scores);
  const TaskScoreRecord* best = nullptr;
  for (const TaskScoreRecord& known : task_scores_)
    if (is_beside(known) && (!best || is_preferred(known, *best))) best = &known;
  std::erase_if(preferred_task_scores_, is_beside);
  preferred_task_scores_.push_back(*best);
}

void RunHistory::rewind(int64_t step) {
  rewound_ = true;
  for (Series& series : series_) {
    const auto keep = std::upper_bound(series.step.begin(), series.step.end(), static_cast<double>(step)) - series.step.begin();
    for (auto* column : {&series.step, &series.tokens, &series.flops, &series.seconds, &series.value})
      column->resize(static_cast<size_t>(keep));
    if (!series.error.empty()) series.error.resize(static_cast<size_t>(keep));
  }
  if (steps_)
    for (size_t i = 0; i < steps_->place.size(); ++i) steps_->thinning[i].cut(series_[steps_->place[i]]);
  while (!statistics_.empty() && statistics_.back().at.step > step) statistics_.pop_back();
  for (std::vector<TaskScoreRecord>* list : {&task_scores_, &preferred_task_scores_})
    std::erase_if(*list, [&](const TaskScoreRecord& scores) { return scores.step > step; });
  if (last_evaluation_ && last_evaluation_->at.step > step) last_evaluation_.reset();
  std::erase_if(loss_gaps_, [&](const LossGap& gap) { return gap.at.step > step; });
  in_loss_gap_ = false;
  finite_loss_.reset();
  if (const Series* losses = find("train/loss"); losses && !losses->value.empty()) {
    const std::vector<double>& values = losses->value;
    in_loss_gap_ = !std::isfinite(values.back());
    const auto last = std::find_if(values.rbegin(), values.rend(), [](double v) { return std::isfinite(v); });
    if (last != values.rend()) finite_loss_ = *last;
  }
  step_ = std::max<int64_t>(0, std::min(step_, step));
}

}  // namespace saccade

#include "analysis/studies/report/bits_per_byte.h"

#include <cmath>

#include "analysis/studies/report/numbers.h"

namespace saccade {

namespace {

class Mean {
 public:
  void add(double value) { sum_ += value, ++count_; }
  double value() const { return count_ > 0 ? sum_ / count_ : std::nan(""); }

 private:
  double sum_ = 0, count_ = 0;
};

/// The mean over a run's domains of one kind, at the steps where all are evaluated; empty where bits are not known of one.
Series mean_in_bits(const Run& run, bool ood) {
  const Series* steps = run.find(ood ? "ood/loss" : "validation/loss");
  if (!steps || !run.last_evaluation()) return {};
  Series mean = *steps;
  mean.error.clear();
  mean.value = std::vector<double>(steps->value.size(), 0.0);
  double domains = 0;
  for (const DomainLoss& last : run.last_evaluation()->losses) {
    if (last.ood != ood) continue;
    const Series* loss = run.find((ood ? "ood/loss/" : "validation/loss/") + last.domain);
    const double ratio = last.bits_per_byte / last.loss;
    if (!loss || loss->step != steps->step || !std::isfinite(ratio)) return {};
    for (size_t i = 0; i < loss->value.size(); ++i) mean.value.edit()[i] += ratio * loss->value[i];
    ++domains;
  }
  for (double& value : mean.value.edit()) value /= domains;
  return domains > 0 ? mean : Series{};
}

const Column& spent_of(const Series& series, size_t spent) {
  return spent == static_cast<size_t>(Spent::tokens)  ? series.tokens
         : spent == static_cast<size_t>(Spent::flops) ? series.flops
                                                      : series.seconds;
}

}  // namespace

MeanBits bits_of(const SequenceLosses& losses) {
  Mean inside, outside;
  for (const auto& [name, domain] : losses.domains) (domain.ood ? outside : inside).add(domain.bits_per_byte);
  return {inside.value(), outside.value()};
}

MeanBits bits_of(const std::optional<EvaluationRecord>& evaluation) {
  Mean inside, outside;
  if (evaluation)
    for (const DomainLoss& loss : evaluation->losses) (loss.ood ? outside : inside).add(loss.bits_per_byte);
  return {inside.value(), outside.value()};
}

CourseInBits course_in_bits(const Run& run) {
  CourseInBits found;
  const Series inside = mean_in_bits(run, false), outside = mean_in_bits(run, true);
  const bool both = inside.step == outside.step;
  for (size_t i = 0; i < inside.step.size(); ++i) {
    const double bits = inside.value[i], ood = both ? outside.value[i] : std::nan("");
    if (!std::isfinite(bits)) continue;
    for (size_t spent = 0; spent < found.courses.size(); ++spent) {
      Course& course = found.courses[spent];
      const double amount = spent_of(inside, spent)[i];
      if (!std::isfinite(amount) || (!course.spent.empty() && amount <= course.spent.back())) continue;
      course.spent.push_back(amount), course.pretraining.push_back(bits), course.ood.push_back(ood);
    }
    if (!std::isfinite(ood)) continue;
    found.trajectory.pretraining.push_back(bits), found.trajectory.ood.push_back(ood), found.trajectory.step.push_back(inside.step[i]);
  }
  return found;
}

std::vector<CellNumbers> in_bits_per_byte(std::vector<CellNumbers> cells) {
  for (CellNumbers& cell : cells)
    for (SeedNumbers& seed : cell.seeds) {
      seed.end.validation = seed.bits.validation, seed.end.ood = seed.bits.ood;
      seed.end.domains.clear();
      seed.trajectory = seed.in_bits.trajectory, seed.courses = seed.in_bits.courses;
      seed.losses.reset(), seed.branches.clear();
      seed.validation_error = seed.ood_error = std::nan("");
    }
  return cells;
}

}  // namespace saccade

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/comparison.h"
#include "analysis/comparison/groups.h"
#include "analysis/comparison/training_loss.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// Training losses and the tokens that each stands for. Of a thinned run the means of its stretches, and the steps behind the last of them.
struct TrainingLosses {
  std::vector<double> step, tokens, loss, weight;
};
TrainingLosses training_losses(const Run& run) {
  TrainingLosses losses;
  const Series *train = run.find("train/loss"), *means = run.find("train/loss/mean");
  if (!train) return losses;
  const auto add = [&](const Series& series, size_t from) {
    for (size_t i = from; i < series.step.size(); ++i) {
      const double before = losses.tokens.empty() ? 0 : losses.tokens.back();
      losses.step.push_back(series.step[i]);
      losses.tokens.push_back(series.tokens[i]);
      losses.loss.push_back(series.value[i]);
      losses.weight.push_back(means ? series.tokens[i] - before : 1);
    }
  };
  if (means) add(*means, 0);
  add(*train, means ? 2 * means->step.size() : 0);  // two points a stretch
  return losses;
}

/// The mean of the training loss of the steps in (tokens − window, tokens] at every step of `at` that has any before it.
Series smoothed_training_loss(const Run& run, const Series& at, double window) {
  Series smoothed{"train/loss", at.unit, {}, {}, {}, {}, {}};
  const TrainingLosses train = training_losses(run);
  size_t begin = 0, end = 0;
  for (size_t i = 0; i < at.step.size(); ++i) {
    while (end < train.step.size() && train.step[end] <= at.step[i]) ++end;
    if (end == 0) continue;  // before the first step nothing has been trained on
    while (begin + 1 < end && train.tokens[begin] <= at.tokens[i] - window) ++begin;
    double sum = 0, weight = 0;
    for (size_t k = begin; k < end; ++k) sum += train.weight[k] * train.loss[k], weight += train.weight[k];
    smoothed.step.push_back(at.step[i]);
    smoothed.tokens.push_back(at.tokens[i]);
    smoothed.flops.push_back(at.flops[i]);
    smoothed.seconds.push_back(at.seconds[i]);
    smoothed.value.push_back(sum / weight);
  }
  return smoothed;
}

/// The mean of the training loss of the steps in [first, last]; of the last one before `last` where there is none. Stretches of thinned
/// runs count where they end. NaN where nothing was trained on up to then.
double training_loss_between(const TrainingLosses& train, double first, double last) {
  const auto end = std::upper_bound(train.step.begin(), train.step.end(), last);
  if (end == train.step.begin()) return std::nan("");
  const auto begin = std::min(std::lower_bound(train.step.begin(), train.step.end(), first), end - 1);
  double sum = 0, weight = 0;
  for (auto k = begin - train.step.begin(); k < end - train.step.begin(); ++k) {
    const auto i = static_cast<size_t>(k);
    sum += train.weight[i] * train.loss[i], weight += train.weight[i];
  }
  return sum / weight;
}

/// As `mean`, each domain by its tokens in training; without values where these are not recorded.
Series weighted_mean(const Run& run, const Series& mean) {
  Series weighted = mean;
  weighted.error.clear();
  weighted.value = std::vector<double>(mean.value.size(), 0.0);
  const nlohmann::json& config = run.info().config;
  double total = 0;
  for (const nlohmann::json& domain : config.value(nlohmann::json::json_pointer("/data/train"), nlohmann::json::array())) {
    const Series* loss = run.find("validation/loss/" + domain.get<std::string>());
    const auto tokens = run.info().provenance.value(nlohmann::json::json_pointer("/domain_tokens") / domain.get<std::string>(), 0.0);
    if (!loss || loss->step != mean.step || !(tokens > 0)) return {};
    for (size_t i = 0; i < loss->value.size(); ++i) weighted.value.edit()[i] += tokens * loss->value[i];
    total += tokens;
  }
  for (double& value : weighted.value.edit()) value /= total;
  return total > 0 ? weighted : Series{};
}

}  // namespace

PretrainingLoss::Kind parse_pretraining_loss(const std::string& name) {
  if (name == "validation") return PretrainingLoss::Kind::validation;
  if (name == "weighted") return PretrainingLoss::Kind::weighted;
  if (name == "train") return PretrainingLoss::Kind::train;
  throw UsageError("pre-training loss \"" + name + "\"; expected validation, weighted or train");
}

std::string describe(const PretrainingLoss& loss) {
  if (loss.kind == PretrainingLoss::Kind::weighted)
    return "mean of the validation losses of the training domains, weighted by their tokens in training";
  if (loss.kind == PretrainingLoss::Kind::validation)
    return "mean of the validation losses of the training domains, each domain counting the same";
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "training loss, mean over the last %.6g tokens", loss.window);
  return text.data();
}

Series pretraining_series(const Run& run, const PretrainingLoss& loss) {
  const Series* mean = run.find("validation/loss");
  if (!mean || loss.kind == PretrainingLoss::Kind::validation) return mean ? *mean : Series{};
  return loss.kind == PretrainingLoss::Kind::train ? smoothed_training_loss(run, *mean, loss.window) : weighted_mean(run, *mean);
}

void require_recorded(const std::vector<const Run*>& runs, const PretrainingLoss& loss) {
  for (const Run* run : runs)
    if (run->find("validation/loss") && pretraining_series(*run, loss).value.empty())
      throw DataError(run->info().directory.string() + ": the pre-training loss cannot be the " + describe(loss) +
                      ", since the run does not record what that needs (runs of earlier versions do not); expected another kind");
}

Trajectory trajectory(const Run& run, const std::string& domain, const PretrainingLoss& loss) {
  Trajectory t;
  const Series inside = pretraining_series(run, loss);
  const Series* outside = run.find(domain.empty() ? "ood/loss" : "ood/loss/" + domain);
  if (!outside) return t;
  size_t j = 0;
  for (size_t i = 0; i < inside.step.size(); ++i) {
    while (j < outside->step.size() && outside->step[j] < inside.step[i]) ++j;
    if (j == outside->step.size()) break;
    if (outside->step[j] != inside.step[i] || !std::isfinite(inside.value[i]) || !std::isfinite(outside->value[j])) continue;
    t.pretraining.push_back(inside.value[i]);
    t.ood.push_back(outside->value[j]);
    t.step.push_back(inside.step[i]);
  }
  return t;
}

double final_training_loss(const Run& run) {
  const TrainingLosses train = training_losses(run);
  if (train.step.empty()) return std::nan("");
  const double last = train.step.back();
  return training_loss_between(train, last - std::floor(0.01 * last) + 1, last);
}

Trajectory held_back_trajectory(const Run& run) {
  Trajectory t;
  const Series* held_back = run.find("validation/loss");
  if (!held_back) return t;
  const TrainingLosses train = training_losses(run);
  const double reach = 0.005 * static_cast<double>(run.info().steps);
  for (size_t i = 0; i < held_back->step.size(); ++i) {
    const double step = held_back->step[i], loss = held_back->value[i];
    const double training = training_loss_between(train, step - reach, step + reach);
    if (!std::isfinite(training) || !std::isfinite(loss)) continue;
    t.pretraining.push_back(training);
    t.ood.push_back(loss);
    t.step.push_back(step);
  }
  return t;
}

std::optional<double> ood_at(const Trajectory& trajectory, double pretraining_loss) {
  if (trajectory.pretraining.empty() || trajectory.pretraining.front() < pretraining_loss) return {};
  double above = trajectory.pretraining.front(), ood_above = trajectory.ood.front();
  for (size_t i = 0; i < trajectory.pretraining.size(); ++i) {
    const double loss = trajectory.pretraining[i], ood = trajectory.ood[i];
    if (i > 0 && loss >= above) continue;  // not on the envelope
    if (loss <= pretraining_loss) {
      const double share = above == loss ? 1 : (above - pretraining_loss) / (above - loss);
      return ood_above + share * (ood - ood_above);
    }
    above = loss;
    ood_above = ood;
  }
  return {};
}

namespace {

/// What all trajectories of a group have passed: from `start` down to `lowest`.
struct Passed {
  double start = INFINITY, lowest = -INFINITY;
  bool at(double loss) const { return lowest <= loss && loss <= start; }
};

Passed passed_by(const std::vector<Trajectory>& trajectories) {
  Passed passed;
  for (const Trajectory& t : trajectories) {
    if (t.pretraining.empty()) continue;
    passed.lowest = std::max(passed.lowest, *std::min_element(t.pretraining.begin(), t.pretraining.end()));
    passed.start = std::min(passed.start, t.pretraining.front());
  }
  return passed;
}

}  // namespace

std::optional<double> lowest_common_loss(const std::vector<Trajectory>& trajectories) {
  const Passed passed = passed_by(trajectories);
  if (!std::isfinite(passed.lowest) || passed.lowest > passed.start) return {};
  return passed.lowest;
}

std::optional<double> widest_common_loss(const std::vector<std::vector<Trajectory>>& groups) {
  std::vector<Passed> all;
  for (const std::vector<Trajectory>& group : groups)
    if (const Passed passed = passed_by(group); std::isfinite(passed.lowest) || all.empty()) all.push_back(passed);
  if (all.empty() || !std::isfinite(all.front().lowest)) return {};
  std::optional<double> widest;
  int64_t most = all.size() > 1 ? 1 : 0;  // the first alone is no comparison
  for (const Passed& candidate : all) {
    const double loss = candidate.lowest;
    if (!std::isfinite(loss) || !all.front().at(loss)) continue;
    const int64_t here = std::count_if(all.begin(), all.end(), [&](const Passed& p) { return p.at(loss); });
    if (here > most || (widest && here == most && loss < *widest)) most = here, widest = loss;
  }
  return widest;
}

std::optional<double> common_loss(const std::vector<const Run*>& runs, const PretrainingLoss& loss) {
  const TrunksAndBranches trunks(runs);
  const auto trajectory_of = [&](const Run& run) {
    const bool counts = run.info().state != RunState::diverged && run.damage().empty();
    return counts ? trunks.trajectory_of(run, "", loss) : Trajectory{};
  };
  std::vector<std::vector<Trajectory>> all, finished;
  for (const RunGroup& group : gather_runs(trunks.runs())) {
    std::vector<Trajectory> of_group, whole;
    for (const Run* run : group.seeds) {
      Trajectory t = trajectory_of(*run);
      if (t.pretraining.empty()) continue;
      if (run->info().state == RunState::finished) whole.push_back(t);
      of_group.push_back(std::move(t));
    }
    if (!of_group.empty()) all.push_back(std::move(of_group));
    if (!whole.empty()) finished.push_back(std::move(whole));
  }
  return widest_common_loss(finished.empty() ? all : finished);
}

}  // namespace saccade

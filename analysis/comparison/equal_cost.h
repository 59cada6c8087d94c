#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/statistics.h"

namespace saccade {

/// What a run takes more of with every step, and may be held equal when runs are compared.
enum class Spent {
  tokens,
  flops,
  seconds  ///< of its steps alone, evaluation apart, on the device it ran on
};
const char* to_string(Spent spent);
/// tokens, flops or seconds. Throws UsageError on another.
Spent parse_spent(const std::string& name);
/// "1.23e+12 FLOPs", "8192 tokens", "12.3 s of training"
std::string describe(Spent spent, double amount);

/// Losses along one run against what it had taken until then, or those of the ends of its cooldown branches. Equal lengths; `spent`
/// ascends.
struct Course {
  std::vector<double> spent, pretraining, ood;  ///< nats per token; NaN where not measured
};
Course course(const Run& run, Spent spent, const std::string& domain = "", const PretrainingLoss& loss = {});

/// Both losses at an amount, linearly between the two points around it; nothing before the first and behind the last.
struct LossesAt {
  double pretraining = 0, ood = 0;
};
std::optional<LossesAt> losses_at(const Course& course, double amount);

/// The most that all have taken at their last points; those without points do not count.
std::optional<double> least_spent(const std::vector<Course>& courses);

/// The device that seconds are of: "cuda:0, NVIDIA H200", "cpu, Intel(R) Xeon(R), 2 threads".
std::string device_of(const RunInfo& info);
/// The same for every GPU of one model, which is as fast in another slot: "NVIDIA H200" of "cuda:1, NVIDIA H200".
std::string model_of_device(const std::string& device);
/// Why seconds of these runs cannot be compared: they are of several devices. Empty where they are of one.
std::string different_devices(const std::vector<const RunInfo*>& runs);
/// What else keeps their seconds from being those of the device alone: runs that were at work on it at the same time, in words; hosts that
/// differ. From when each began and run.json was written last, so a run that was stopped and resumed counts the time between. Empty where
/// nothing is known against them.
std::vector<std::string> shared_time(const std::vector<const RunInfo*>& runs);

/// What of the rows' parameters, tokens, FLOPs, seconds and state is equal within 1 %, and the range of what is not, as far as it is known
/// of all: "Equal within 1 %: tokens. Not equal: parameters 1000 to 1200, …". Empty for one row.
std::string describe_equality(const std::vector<ComparisonRow>& rows);

/// Runs of one experiment at an equal amount of what is taken.
struct EqualCostRow {
  std::string title;
  Repeated pretraining, ood;              ///< over seeds that came so far
  std::optional<double> against_first;    ///< of the mean OOD loss
  std::string read_from;                  ///< "end", "mid-schedule", "constant rate"
  std::vector<std::string> devices = {};  ///< of its seeds
};
struct EqualCost {
  Spent spent = Spent::tokens;
  std::optional<double> amount;  ///< that of the run that took least; nothing where no run has been evaluated
  std::vector<EqualCostRow> rows;
  std::vector<std::string> warnings;
};
/// At the amount of the run that took least. Throws UsageError for seconds of different devices, naming them.
EqualCost compare_at_equal(const std::vector<const Run*>& runs, Spent spent, const std::string& domain = "",
                           const PretrainingLoss& pretraining = {});

std::string to_text(const EqualCost& comparison);
nlohmann::json to_json(const EqualCost& comparison);

}  // namespace saccade

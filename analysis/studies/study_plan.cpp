#include "analysis/studies/study_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "analysis/figures/count_text.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/vocabulary.h"
#include "models/training/branch_starts.h"
#include "models/training/plan.h"
#include "models/training/run_cost.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr double kLongestStep = 1e11;  ///< FLOPs of a step that is still timed on a CPU: some two seconds

/// Times every distinct model once.
class Stopwatch {
 public:
  explicit Stopwatch(const PlanOptions& options) : options_(options) {}

  /// Nothing, with why in `note`, where it is not measured.
  std::optional<RunPace> pace(const RunConfig& config, const Plan& plan, std::string& note) {
    if (!options_.measure) return {};
    const Json key{config.architecture,
                   config.data.sequence_length,
                   config.data.task,
                   config.data.task.empty() ? Json() : Json{config.data.train, config.data.ood},  // whose lengths are evaluated
                   micro_batch_tokens(config.training),
                   config.precision,
                   config.training.optimizer,
                   config.training.capture_tokens,
                   config.training.gradient_accumulation};
    if (const auto known = known_.find(key.dump()); known != known_.end()) return known->second;
    if (plan.where && !plan.where->is_cuda() && plan.flops_per_step > kLongestStep) {
      note = "a step is too long to be timed on the CPU";
      return {};
    }
    if (now() - began_ > options_.measure_seconds) {
      note = "not timed: models before it have taken " + std::to_string(static_cast<int>(options_.measure_seconds)) +
             " s, and --measure-seconds allows more";
      return {};
    }
    try {
      require_device(config, plan);
      if (options_.say) options_.say("timing a step of " + config.name);
      return known_[key.dump()] = measure_pace(config, plan);
    } catch (const DeviceError& error) {
      note = error.what();
      return {};
    }
  }

 private:
  const PlanOptions& options_;
  const double began_ = now();
  std::map<std::string, RunPace> known_;
};

int64_t runs_to_do(const StudyView& view, size_t cell) {
  const CellView& mine = view.views[cell];
  int64_t runs = 0;
  for (const size_t at : mine.wanted) {
    const WantedRun::Status status = view.wanted[at].status;
    runs += status != WantedRun::Status::finished && status != WantedRun::Status::diverged && view.wanted[at].run.cell == cell;
  }
  if (!view.study.tuning || mine.tuning.state != Tuning::State::open) return runs;
  return runs + std::count_if(mine.seeds.begin(), mine.seeds.end(), [&](int64_t seed) {
           const std::vector<int64_t>& searched = view.study.tuning->seeds;
           return std::find(searched.begin(), searched.end(), seed) == searched.end();
         });
}

CellPlan plan_cell(const StudyView& view, size_t cell, Stopwatch& watch) {
  const RunConfig& config = view.wanted[view.views[cell].wanted.front()].run.config;
  const Plan plan = make_plan(config, vocabulary_of(config.data.tokenizer));
  CellPlan result;
  result.name = view.cells[cell].name, result.device = plan.device;
  result.runs = runs_to_do(view, cell);
  result.short_of = view.cells[cell].short_of;
  result.parameters = plan.parameters;
  const int64_t more = branch_steps(config.training);
  result.tokens = plan.tokens + more * plan.tokens_per_step;
  result.flops = plan.total_flops() + static_cast<double>(more) * plan.flops_per_step;
  result.disk_bytes = static_cast<double>(checkpoints_kept(config.training) * checkpoint_bytes(plan));
  if (!cooldown_losses(config.training).empty()) result.note = "branches at losses counted as the latest there can be";
  if (const auto pace = watch.pace(config, plan, result.note)) result.seconds = run_seconds(config, plan, *pace);
  return result;
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

std::string duration(double seconds) {
  if (std::isnan(seconds)) return "not measured";
  if (seconds < 100) return format("%.1f s", seconds);
  return seconds < 7200 ? format("%.1f min", seconds / 60) : format("%.1f h", seconds / 3600);
}

std::string million(double value) { return value < 1e9 ? format("%.3g M", value / 1e6) : format("%.3g G", value / 1e9); }

/// How many of the runs fit into so many hours, in their order; −1 where a run's time is not known.
int64_t runs_within(const StudyPlan& plan, double hours) {
  double left = hours * 3600;
  int64_t runs = 0;
  for (const CellPlan& cell : plan.cells)
    for (int64_t i = 0; i < cell.runs; ++i, ++runs) {
      if (std::isnan(cell.seconds)) return -1;
      if (left <= 0) return runs;
      left -= cell.seconds;
    }
  return runs;
}

}  // namespace

void require_startable(const StudyView& view) {
  if (const auto& tuning = view.study.tuning; tuning && tuning->extend && tuning->values.size() == 1)
    throw UsageError(view.study.origin +
                     ": /tuning/extend is true, but there is one value to try; expected two or more, whose ratio leads to the next one");
  const StudyEvaluation& evaluation = view.study.evaluation;
  if (evaluation.tokens <= 0 || evaluation.length > 0) return;
  for (const WantedRun& wanted : view.wanted)
    if (const int64_t length = wanted.run.config.data.sequence_length; evaluation.tokens < length)
      throw UsageError(view.study.origin + ": /evaluations/tokens is " + std::to_string(evaluation.tokens) +
                       "; expected at least one sequence of " + std::to_string(length) + " tokens, as " + wanted.run.name +
                       " has, or a shorter /evaluations/length");
}

std::vector<std::string> missing_text(const StudyView& view) {
  std::map<std::string, std::set<std::string>> domains;  // by corpus
  for (const WantedRun& wanted : view.wanted) {
    const DataConfig& data = wanted.run.config.data;
    if (!data.task.empty()) continue;  // its sequences are generated
    std::set<std::string>& wants = domains[data.corpus];
    wants.insert(data.train.begin(), data.train.end()), wants.insert(data.ood.begin(), data.ood.end());
  }
  std::set<std::string> made_later;
  for (const CorpusSummary& known : list_corpora())
    if (known.built_in && !known.present) made_later.insert(known.name);
  std::vector<std::string> missing;
  for (const auto& [name, wants] : domains) {
    if (made_later.contains(name)) continue;
    try {
      const Corpus corpus = Corpus::open(name);
      for (const std::string& domain : wants)
        if (!corpus.has_domain(domain)) missing.push_back(corpus.missing_domain(domain));
    } catch (const Error& error) {
      missing.emplace_back(error.what());
    }
  }
  return missing;
}

StudyPlan plan_study(const StudyView& view, const PlanOptions& options) {
  StudyPlan plan;
  plan.name = view.study.name, plan.question = view.study.question;
  plan.runs = static_cast<int64_t>(view.wanted.size()) + view.later;
  plan.gpus = static_cast<int64_t>(gpus().size());
  plan.may_extend = view.study.tuning && view.study.tuning->extend;
  plan.missing = missing_text(view);
  Stopwatch watch(options);
  for (size_t cell = 0; cell < view.cells.size(); ++cell) {
    const CellPlan one = plan_cell(view, cell, watch);
    const auto runs = static_cast<double>(one.runs);
    plan.to_do += one.runs;
    plan.tokens += runs * static_cast<double>(one.tokens), plan.flops += runs * one.flops, plan.disk_bytes += runs * one.disk_bytes;
    plan.seconds += one.runs > 0 ? runs * one.seconds : 0;
    plan.cells.push_back(one);
  }
  return plan;
}

std::string to_text(const StudyPlan& plan, std::optional<double> budget) {
  std::string text = plan.question + "\n\n" + counted(plan.runs, "run") + ", " + std::to_string(plan.to_do) + " of them to do" +
                     (plan.may_extend ? " (more where a best value is at an edge)" : "") + "\n" + million(plan.tokens) + " tokens, " +
                     format("%.3g FLOPs", plan.flops) + "\ntime of one run after the other: " + duration(plan.seconds) +
                     "\ndisk, by the checkpoints: " + format("%.3g GB", plan.disk_bytes / 1e9) + "\n";
  if (budget) {
    const int64_t runs = runs_within(plan, *budget);
    text += format("%g h: ", *budget) +
            (runs < 0 ? "cannot be told, since not every run's time is known"
                      : std::to_string(runs) + " of the runs " + (runs == 1 ? "is" : "are") + " begun") +
            "\n";
  }
  for (const std::string& what : plan.missing) text += "not here: " + what + "\n";
  text += "\n";
  for (const CellPlan& cell : plan.cells)
    text += cell.name + ": " + counted(cell.runs, "run") + " of " + million(static_cast<double>(cell.tokens)) + " tokens, " +
            million(static_cast<double>(cell.parameters)) + " parameters, " + duration(cell.seconds) + " each on " + cell.device +
            (cell.note.empty() ? "" : " (" + cell.note + ")") + (cell.short_of.empty() ? "" : "; warning: " + cell.short_of) + "\n";
  return text;
}

Json to_json(const StudyPlan& plan, std::optional<double> budget) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json cells = Json::array();
  for (const CellPlan& cell : plan.cells)
    cells.push_back({{"name", cell.name},
                     {"runs", cell.runs},
                     {"device", cell.device},
                     {"parameters", cell.parameters},
                     {"tokens", cell.tokens},
                     {"flops", cell.flops},
                     {"seconds", number(cell.seconds)},
                     {"disk_bytes", cell.disk_bytes},
                     {"note", cell.note},
                     {"short_of", cell.short_of}});
  Json json{{"name", plan.name},
            {"question", plan.question},
            {"runs", plan.runs},
            {"to_do", plan.to_do},
            {"tokens", plan.tokens},
            {"flops", plan.flops},
            {"seconds", number(plan.seconds)},
            {"disk_bytes", plan.disk_bytes},
            {"may_extend", plan.may_extend},
            {"gpus", plan.gpus},
            {"missing", plan.missing},
            {"cells", cells}};
  if (budget) json["runs_within_budget"] = runs_within(plan, *budget);
  return json;
}

}  // namespace saccade

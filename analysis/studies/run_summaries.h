#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// The last numbers of a run or of a cooldown branch: losses in nats per token, NaN where they were not measured.
struct RunEnd {
  int64_t step = 0, tokens = 0;
  double flops = 0, seconds = 0;                            ///< until then, a branch's trunk included; seconds of steps alone
  double train = std::numeric_limits<double>::quiet_NaN();  ///< final_training_loss()
  double validation = std::numeric_limits<double>::quiet_NaN();
  double ood = std::numeric_limits<double>::quiet_NaN();
  double validation_error = std::numeric_limits<double>::quiet_NaN();  ///< standard errors over sequences
  double ood_error = std::numeric_limits<double>::quiet_NaN();
  double entropy = std::numeric_limits<double>::quiet_NaN();  ///< nats, mean over all layers and heads of what was probed last
  std::map<std::string, double> domains = {};                 ///< OOD losses by domain
  std::string branch = {};                                    ///< of a cooldown branch: its folder in the run, "branches/step-200"
};

/// What a study needs to know of a run, without its series.
struct RunSummary {
  std::string name;      ///< of its folder
  std::string identity;  ///< run_identity(); empty where its config cannot be read today
  RunState state = RunState::created;
  bool live = false;
  int64_t step = 0, steps = 0, seed = 0, parameters = 0;
  double seconds = 0, flops = 0;                                                    ///< of the steps so far, those of its branches included
  int64_t tokens = 0;                                                               ///< likewise
  double parameters_without_embeddings = std::numeric_limits<double>::quiet_NaN();  ///< NaN: not recorded, by earlier versions
  double state_bytes_per_token = 0;
  std::string message;
  std::string lost;  ///< what_is_lost() of the run and its branches, in one line; empty when everything is there
  RunEnd end;
  std::vector<RunEnd> branches;  ///< of finished ones, by step
  bool ended() const { return state == RunState::finished || state == RunState::diverged; }
};

/// Run::damage() and Run::lost(), in one line; empty when everything is there.
std::string what_is_lost(const Run& run);

RunSummary summarize(const std::filesystem::path& run);

/// The runs in STUDY/runs, by name. What ended is read once and kept in STUDY/index.json, by the time of its run.json and its
/// journals, so that a thousand runs take less than a second. Why runs cannot be read is told in `unreadable`, by their folders' names.
std::vector<RunSummary> run_summaries(const std::filesystem::path& study, std::map<std::string, std::string>* unreadable = nullptr);

}  // namespace saccade

#include "analysis/studies/pace_watch.h"

#include <algorithm>

#include "kernels/engine/error.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int64_t kTail = int64_t{1} << 16;  ///< of the journal of a run that had begun before

Json part(const Json& config, const char* section, const char* key) {
  return config.value(Json::json_pointer(std::string("/") + section + "/" + key), Json());
}

}  // namespace

std::string model_of(const Json& config) {
  Json model{config.value("architecture", Json()), config.value("precision", Json()), part(config, "data", "sequence_length")};
  for (const char* key : {"batch_tokens", "gradient_accumulation", "optimizer", "activation_checkpointing"})
    model.push_back(part(config, "training", key));
  return model.dump();
}

void PaceWatch::read(Followed& run) {
  std::error_code none;
  if (!fs::exists(run.run.directory / "journal.jsonl", none)) return;  // still preparing
  run.journal.poll([](const Record&) {},
                   [&](const StepRecord& step) {
                     run.last = step;
                     ++run.steps;
                   });
}

void PaceWatch::follow(const std::vector<RunAtWork>& runs) {
  if (std::equal(runs.begin(), runs.end(), runs_.begin(), runs_.end(), [](const RunAtWork& a, const Followed& b) { return a == b.run; }))
    return;
  runs_.clear();
  for (const RunAtWork& run : runs) {
    runs_.push_back({run, JournalReader(run.directory / "journal.jsonl")});
    std::error_code none;
    if (!fs::exists(run.directory / "journal.jsonl", none)) continue;
    runs_.back().journal.skip_to_end(kTail);
    read(runs_.back());
    runs_.back().steps = 0;
  }
}

int64_t PaceWatch::poll(DeviceSharing& sharing) {
  for (Followed& run : runs_) read(run);
  int64_t measured = 0;
  const bool all = std::all_of(runs_.begin(), runs_.end(), [](const Followed& run) { return run.steps > 1; });  // the first one is long
  for (Followed& run : runs_) {
    if (!all || run.told) continue;
    if (!run.from) run.from = run.last;
    const double seconds = run.last.seconds - run.from->seconds;
    if (run.last.step - run.from->step < kSteps || seconds < kSeconds) continue;
    sharing.measured(run.run.model, static_cast<int64_t>(runs_.size()), static_cast<double>(run.last.tokens - run.from->tokens) / seconds);
    run.told = true;
    ++measured;
  }
  return measured;
}

}  // namespace saccade

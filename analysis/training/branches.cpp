#include "analysis/training/branches.h"

#include <algorithm>
#include <set>

#include "analysis/runs/run_info.h"
#include "models/architectures/registry.h"
#include "models/schedules/wsd.h"
#include "models/training/branch_starts.h"
#include "models/training/training_step.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

/// Settings of the architecture that differ, in words: "architecture.width is 32, was 16".
std::string changed_settings(const nlohmann::json& now, const nlohmann::json& before) {
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "; ") + line; };
  for (const auto& [name, value] : now.items())
    if (!before.contains(name))
      add("architecture." + name + " is " + value.dump() + ", was not there");
    else if (before.at(name) != value)
      add("architecture." + name + " is " + value.dump() + ", was " + before.at(name).dump());
  for (const auto& [name, value] : before.items())
    if (!now.contains(name)) add("architecture." + name + " is not there, was " + value.dump());
  return text;
}

/// Tensors that differ, the first five of them.
std::string differences(const std::vector<NamedTensor>& stored, const std::vector<NamedTensor>& wanted) {
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& line) {
    if (++count <= 5) text += (text.empty() ? "" : "; ") + line;
  };
  const auto find = [](const std::vector<NamedTensor>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const NamedTensor& t) { return t.name == name; });
  };
  for (const NamedTensor& want : wanted) {
    const auto have = find(stored, want.name);
    if (have == stored.end())
      add(want.name + " is new");
    else if (have->tensor.shape() != want.tensor.shape())
      add(want.name + " would be " + to_string(want.tensor.shape()) + ", the checkpoint has " + to_string(have->tensor.shape()));
    else if (have->tensor.dtype() != want.tensor.dtype())
      add(want.name + " would be " + to_string(want.tensor.dtype()) + ", the checkpoint has " + to_string(have->tensor.dtype()));
  }
  for (const NamedTensor& have : stored)
    if (find(wanted, have.name) == wanted.end()) add("there would be no " + have.name);
  return count > 5 ? text + "; and " + std::to_string(count - 5) + " more" : text;
}

}  // namespace

fs::path branch_directory(const fs::path& trunk, int64_t step) { return trunk / "branches" / ("step-" + std::to_string(step)); }

bool branch_begun(const fs::path& trunk, int64_t step) {
  const fs::path directory = branch_directory(trunk, step);
  return holds_run(directory) && !step_files(directory, kCheckpoints).empty();
}

bool branch_finished(const fs::path& trunk, int64_t step) {
  const fs::path directory = branch_directory(trunk, step);
  if (!holds_run(directory)) return false;
  const RunState state = read_run_info(directory).state;
  return state == RunState::finished || state == RunState::diverged;
}

std::vector<int64_t> passed_losses(const TrainingConfig& training, const Series& validation) {
  std::set<int64_t> steps;
  const StableSteps stable = stable_steps(training);
  for (const double loss : cooldown_losses(training)) {
    const WsdSettings wsd = wsd_schema.read(training.schedule_settings, "/training");
    for (size_t i = 0; i < validation.step.size(); ++i) {
      const auto step = static_cast<int64_t>(validation.step[i]);
      if (step < std::max<int64_t>(1, stable.first) || step > stable.last || !(validation.value[i] <= loss)) continue;
      if (wsd.branch_cooldown(step) > 0) steps.insert(step);
      break;
    }
  }
  return {steps.begin(), steps.end()};
}

RunConfig cooldown_config(const RunConfig& trunk, int64_t step) {
  const int64_t cooldown = wsd_schema.read(trunk.training.schedule_settings, "/training").branch_cooldown(step);
  nlohmann::json object = to_json(trunk);
  object["name"] = trunk.name + ", cooldown from step " + std::to_string(step);
  object["training"].update({{"steps", step + cooldown},
                             {"warmup_steps", warmup_steps(trunk.training)},
                             {"warmup_share", 0.0},
                             {"cooldown_steps", cooldown},
                             {"cooldown_at", nlohmann::json::array()},
                             {"cooldown_at_loss", nlohmann::json::array()},
                             {"keep_checkpoints", nlohmann::json::array()}});
  return resolve_config(object, "cooldown branch");
}

void require_same_model(const RunConfig& config, const Checkpoint& checkpoint, int64_t vocabulary) {
  const Engine engine = config.precision == "bf16" ? Engine::cuda : Engine::cpu;
  const TrainingStep step(config, vocabulary, Device::plan(engine));
  std::vector<NamedTensor> wanted;
  for (const Parameter& p : step.model().parameters()) wanted.push_back({p.name, p.value});
  if (const std::string text = differences(checkpoint.state.weights, wanted); !text.empty()) {
    const std::string settings = changed_settings(config.architecture, checkpoint.config.value("architecture", nlohmann::json::object()));
    throw UsageError("a fork keeps its parent's model" + (settings.empty() ? "" : ", but " + settings) + ": " + text);
  }
  const std::string before = checkpoint.config.value(nlohmann::json::json_pointer("/training/optimizer"), TrainingConfig{}.optimizer);
  std::string text = before == config.training.optimizer ? "" : "training.optimizer is " + config.training.optimizer + ", was " + before;
  for (const TensorGroup& group : step.optimizer().state()) {
    const auto have = std::find_if(checkpoint.state.optimizer.begin(), checkpoint.state.optimizer.end(),
                                   [&](const TensorGroup& g) { return g.name == group.name; });
    const std::string difference =
        have == checkpoint.state.optimizer.end() ? "no " + group.name : differences(have->tensors, group.tensors);
    if (!difference.empty()) text += (text.empty() ? "" : "; ") + group.name + ": " + difference;
  }
  if (!text.empty()) throw UsageError("a fork goes on with its parent's optimizer, but " + text);
}

}  // namespace saccade

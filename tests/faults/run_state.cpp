// Says, a line of JSON for each run named, what it holds: state, steps in the journal, and hashes of what must be the same in every run of
// one config (records and tensors, without times). Exit 3 when one cannot be read.
#include <iostream>

#include "analysis/runs/results_file.h"
#include "analysis/runs/run.h"
#include "models/corpus/sha256.h"
#include "tests/analysis/trained_run.h"

using namespace saccade;

namespace {

std::string records_hash(const std::filesystem::path& run) {
  Sha256 sha;
  for (const std::string& line : test::comparable_journal(run)) sha.update(line + "\n");
  return hex(sha.finish());
}

std::string state_hash(const Checkpoint& checkpoint) {
  Sha256 sha;
  sha.update(checkpoint.config.at("training").dump() + checkpoint.config.at("architecture").dump());
  sha.update(checkpoint.state.data_position);
  sha.update(static_cast<uint64_t>(checkpoint.state.record.tokens));
  const auto add = [&](const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& named : tensors) {
      sha.update(named.name + to_string(named.tensor.dtype()) + to_string(named.tensor.shape()));
      sha.update(std::string_view(static_cast<const char*>(named.tensor.raw()), static_cast<size_t>(named.tensor.bytes())));
    }
  };
  add(checkpoint.state.weights);
  for (const TensorGroup& group : checkpoint.state.optimizer) add(group.tensors);
  return hex(sha.finish());
}

nlohmann::json state_of(const std::filesystem::path& directory) {
  const Run run(directory);
  const Series* losses = run.find("train/loss");
  std::vector<int64_t> checkpoints = step_files(directory, kCheckpoints);
  nlohmann::json hashes = nlohmann::json::object(), captures = nlohmann::json::object();
  for (const int64_t step : checkpoints)
    hashes[std::to_string(step)] = state_hash(read_checkpoint(step_file(directory, kCheckpoints, step)));
  for (const int64_t step : run.capture_steps()) captures[std::to_string(step)] = run.captures(step).size();
  return {{"state", to_string(run.info().state)},
          {"step", run.info().step},
          {"steps", losses ? losses->step.size() : 0},
          {"last_step", losses && !losses->step.empty() ? losses->step.back() : 0.0},
          {"records", records_hash(directory)},
          {"checkpoints", hashes},
          {"captures", captures},
          {"damage", run.damage()},
          {"lost", run.lost()},
          {"results_current", results_file_is_current(run.info())}};
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) try {
      std::cout << state_of(argv[i]).dump() << std::endl;
    } catch (const Error& error) {
      std::cout << nlohmann::json{{"error", error.what()}}.dump() << std::endl;
      return 3;
    }
  return 0;
}

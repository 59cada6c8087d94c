#include "analysis/studies/study_evaluations.h"

#include <algorithm>

#include "analysis/evaluation/run_evaluation.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/clock.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

StudyEvaluations::StudyEvaluations(const StudyView& view, std::function<void(const std::string&)> say, double seconds)
    : view_(view), say_(std::move(say)), seconds_(seconds), begun_(now()) {}

Json StudyEvaluations::of(const EndOfRun& end, int64_t tokens) {
  const std::string& split = view_.study.evaluation.split;
  const fs::path part = end.branch.empty() ? fs::path(end.run) : fs::path(end.run) / end.branch;
  std::string name = part.string();
  std::replace(name.begin(), name.end(), '/', '.');
  const int64_t length = view_.study.evaluation.length;
  const std::string cut = length > 0 ? ".length-" + std::to_string(length) : "";
  const fs::path file = fs::path(kEvaluations) / (name + "." + split + "." + std::to_string(tokens) + cut + ".json");
  files_.insert(file);
  std::error_code none;
  if (fs::exists(view_.directory / file, none))
    if (Json known = read_sealed_json(view_.directory / file); known.contains("step") && known["step"] == end.step) return known;
  if (seconds_ <= 0 || (made_ > 0 && now() - begun_ > seconds_)) throw TimeIsUp{};
  if (say_) say_("evaluating " + name + " on " + std::to_string(tokens) + " tokens of the " + split + " split");
  RunEvaluationOptions options;
  options.split = split == "test" ? Split::test : Split::validation, options.tokens = tokens, options.length = length;
  const Json evaluation = to_json(evaluate_run(view_.directory / "runs" / part, options));
  make_run_folder(view_.directory / kEvaluations);
  write_sealed_json(view_.directory / file, evaluation);
  ++made_;
  return evaluation;
}

}  // namespace saccade

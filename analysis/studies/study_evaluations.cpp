#include "analysis/studies/study_evaluations.h"

#include <algorithm>

#include "analysis/evaluation/run_evaluation.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/clock.h"
#include "models/config/config.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// Tokens of every domain that a run was told to evaluate on when it ended; 0: none.
int64_t tokens_at_end(const RunInfo& info) {
  const RunConfig config = resolve_config(info.config, "run.json");
  return final_evaluation_sequences(config, info.step - forked_step(info)) * config.data.sequence_length;
}

/// Whether every domain has as many sequences as `tokens` are, or had no more of those that the run was told to take.
bool has_as_many(const Json& evaluation, int64_t tokens, int64_t told) {
  const auto length = evaluation.at("sequence_length").get<int64_t>();
  return std::all_of(evaluation.at("domains").begin(), evaluation.at("domains").end(), [&](const Json& domain) {
    const auto sequences = static_cast<int64_t>(domain.at("by_sequence").size());
    return sequences == tokens / length || (sequences < tokens / length && sequences < told / length);
  });
}

/// What the run evaluated itself, where that is what is asked for; else null.
Json made_by_run(const fs::path& run, int64_t step, int64_t tokens) {
  const fs::path file = run / kEvaluations / ("step-" + std::to_string(step) + ".validation.json");
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  try {
    Json evaluation = read_sealed_json(file);
    return has_as_many(evaluation, tokens, tokens_at_end(read_run_info(run))) ? evaluation : Json();
  } catch (const std::exception&) {  // damaged, or of a run of another version: it is evaluated anew
    return {};
  }
}

}  // namespace

StudyEvaluations::StudyEvaluations(const StudyView& view, std::function<void(const std::string&)> say, double seconds)
    : view_(view), say_(std::move(say)), seconds_(seconds), begun_(now()) {}

Json StudyEvaluations::of(const EndOfRun& end, int64_t tokens) {
  const std::string& split = view_.study.evaluation.split;
  const fs::path part = end.branch.empty() ? fs::path(end.run) : fs::path(end.run) / end.branch;
  std::string name = part.string();
  std::replace(name.begin(), name.end(), '/', '.');
  const int64_t length = view_.study.evaluation.length;
  const std::string cut = length > 0 ? ".length-" + std::to_string(length) : "";
  if (split == "validation" && length == 0)
    if (Json known = made_by_run(view_.directory / "runs" / part, end.step, tokens); !known.is_null()) return known;
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

#include "analysis/studies/study_evaluations.h"

#include <algorithm>

#include "analysis/comparison/end_evaluations.h"
#include "analysis/evaluation/run_evaluation.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
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

/// What stands in a file, of this step; else null, also of a file that is damaged: `damaged` hears why.
Json read_kept(const fs::path& file, int64_t step, std::string& damaged) {
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  try {
    Json known = read_sealed_json(file);
    return known.contains("step") && known["step"] == step ? known : Json();
  } catch (const DataError& error) {
    damaged = error.what();
    return {};
  }
}

fs::path part_of(const EndOfRun& end) { return end.branch.empty() ? fs::path(end.run) : fs::path(end.run) / end.branch; }

/// "RUN.branches.step-4"
std::string name_of(const EndOfRun& end) {
  std::string name = part_of(end).string();
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::string line_of(const EndOfRun& end, int64_t tokens, const std::string& split) {
  return "evaluating " + name_of(end) + " on " + std::to_string(tokens) + " tokens of the " + split + " split";
}

}  // namespace

StudyEvaluations::StudyEvaluations(const StudyView& view, std::function<void(const std::string&)> say, double seconds, StudyWorkers workers)
    : view_(view), say_(std::move(say)), seconds_(seconds), begun_(now()), workers_(std::move(workers)) {}

Json StudyEvaluations::request_of(const EndOfRun& end, int64_t tokens) const {
  const StudyEvaluation& wish = view_.study.evaluation;
  const fs::path file = study_evaluation_file(part_of(end), wish.split, tokens, wish.length);
  return {{"kind", "evaluation"}, {"run", part_of(end).string()}, {"step", end.step},      {"split", wish.split},
          {"tokens", tokens},     {"length", wish.length},        {"file", file.string()}, {"device", workers_.device()}};
}

Json StudyEvaluations::by_run(const EndOfRun& end, int64_t tokens) const {
  const StudyEvaluation& wish = view_.study.evaluation;
  return wish.split == "validation" && wish.length == 0 ? made_by_run(view_.directory / "runs" / part_of(end), end.step, tokens) : Json();
}

Json StudyEvaluations::kept(const std::string& file, int64_t step) {
  std::string damaged;
  Json there = read_kept(view_.directory / file, step, damaged);
  if (!damaged.empty()) damaged_[file] = damaged;
  return there;
}

std::string StudyEvaluations::why_anew(const std::string& file) const {
  return damaged_.contains(file) ? ", since what is kept of it is damaged" : "";
}

void StudyEvaluations::refuse(const std::string& file, const std::string& why) const {
  const auto damaged = damaged_.find(file);
  throw DataError(damaged == damaged_.end() ? why : damaged->second + "; it is not made anew: " + why);
}

void StudyEvaluations::make(const std::vector<EndOfRun>& ends, int64_t tokens) {
  if (!workers_.side_by_side()) return;
  std::vector<StudyPiece> pieces;
  for (const EndOfRun& end : ends) {
    const Json request = request_of(end, tokens);
    const std::string file = request.at("file");
    if (!failed_.contains(file) && by_run(end, tokens).is_null() && kept(file, end.step).is_null())
      pieces.push_back({request, end.run, line_of(end, tokens, view_.study.evaluation.split) + why_anew(file)});
  }
  if (pieces.empty()) return;
  if (seconds_ <= 0) throw TimeIsUp{};
  const PiecesDone done = do_pieces(view_.directory, pieces, workers_, say_, seconds_ - (now() - begun_), made_ == 0);
  made_ += done.made;
  for (const auto& [piece, why] : done.failed) failed_[pieces[piece].request.at("file")] = why;
  if (!done.complete) throw TimeIsUp{};
}

Json StudyEvaluations::of(const EndOfRun& end, int64_t tokens) {
  if (Json made = by_run(end, tokens); !made.is_null()) return made;
  const Json request = request_of(end, tokens);
  const std::string file = request.at("file");
  files_.insert(file);
  if (Json there = kept(file, end.step); !there.is_null()) {
    if (damaged_.contains(file)) renewed_.insert(file);
    PieceClaim::clear(view_.directory, fs::path(file).stem().string());
    return there;
  }
  if (const auto failed = failed_.find(file); failed != failed_.end()) refuse(file, failed->second);
  if (seconds_ <= 0 || (made_ > 0 && now() - begun_ > seconds_)) throw TimeIsUp{};
  if (say_) say_(line_of(end, tokens, view_.study.evaluation.split) + why_anew(file));
  try {
    make_evaluation(view_.directory, request);
  } catch (const Error& error) {
    refuse(file, error.what());
  }
  ++made_;
  if (damaged_.contains(file)) renewed_.insert(file);
  return read_sealed_json(view_.directory / file);
}

void make_evaluation(const fs::path& study, const Json& request) {
  const fs::path file = study / request.at("file").get<std::string>();
  const PieceClaim mine(study, file.stem().string());
  const int64_t step = request.at("step");
  std::string damaged;
  if (!read_kept(file, step, damaged).is_null()) return;
  RunEvaluationOptions options;
  options.split = request.at("split") == "test" ? Split::test : Split::validation;
  options.tokens = request.at("tokens"), options.length = request.at("length"), options.device = request.at("device");
  const Json evaluation = to_json(evaluate_run(study / "runs" / request.at("run").get<std::string>(), options));
  make_run_folder(study / kEvaluations);
  write_sealed_json(file, evaluation);
}

}  // namespace saccade

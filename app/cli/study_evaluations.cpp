#include "app/cli/study_evaluations.h"

#include "analysis/figures/count_text.h"
#include "analysis/remote/mirror.h"
#include "analysis/studies/study_scores.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kSeconds = 1900;  // for one answer; the agent of a host takes at most 1800 for a command

EvaluatedStudy answer_of(const OnHost& study, const StudyEvaluation& wanted, const EvaluationThere& how) {
  const Frame answer = ask_host(study.host,
                                {{"ask", "study-evaluate"},
                                 {"study", study.name},
                                 {"split", wanted.tokens > 0 ? wanted.split : ""},
                                 {"tokens", wanted.tokens},
                                 {"length", wanted.length},
                                 {"data", how.data},
                                 {"devices", how.devices},
                                 {"jobs", how.jobs}},
                                kSeconds);
  try {
    const Json told = parse_json_or_discard(answer.body);
    EvaluatedStudy evaluated{told.at("made"), told.at("complete"), {}, told.at("left_out")};
    for (const Json& file : told.at("files")) evaluated.files.insert(file.get<std::string>());
    if (evaluated.complete || evaluated.made > 0) return evaluated;
  } catch (const Json::exception&) {
    throw DataError("the host " + study.host + " answers something that cannot be read");
  }
  throw DataError("the host " + study.host + " makes no evaluation of " + study.name);
}

}  // namespace

EvaluatedStudy evaluate_on_host(const OnHost& study, const StudyEvaluation& evaluation, const EvaluationThere& how,
                                const std::function<void(const std::string&)>& say) {
  EvaluatedStudy evaluated;
  for (int64_t made = 0; !evaluated.complete; made = evaluated.made) {
    evaluated = answer_of(study, evaluation, how);
    evaluated.made += made;
    if (!evaluated.complete) say(counted(evaluated.made, "evaluation") + " made on " + study.host);
  }
  const HostProfile profile = load_host(study.host);
  const auto channel = Channel::open(study.host, profile);
  Mirror mirror(study.host, profile);
  for (const fs::path& file : evaluated.files) mirror.fetch(*channel, study.name + "/" + file.string());
  return evaluated;
}

EvaluatedStudy evaluate_here(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                             const StudyWorkers& workers) {
  const double begun = now();
  EvaluatedStudy evaluated{0, true, {}, {}};
  if (view.study.evaluation.tokens != 0) evaluated = evaluate_study(view, say, seconds, workers);
  if (!evaluated.complete) return evaluated;
  const double left = evaluated.made > 0 ? std::max(0.0, seconds - (now() - begun)) : seconds;
  const StudyScores scores = study_scores(view, say, left, workers);
  evaluated.made += scores.made, evaluated.complete = scores.complete;
  evaluated.files.insert(scores.files.begin(), scores.files.end());
  evaluated.left_out.insert(evaluated.left_out.end(), scores.remarks.begin(), scores.remarks.end());
  return evaluated;
}

void choose_data(Study& study, const std::string& data) {
  for (StudyTask& task : study.tasks) task.folder = data;
}

void show_what_is_there(Study& study) {
  study.evaluation.tokens = 0;
  for (StudyTask& task : study.tasks) task.not_made = "it was not before, and nothing is with --recorded";
}

void show_scores_of_host(Study& study, const std::string& host) {
  for (StudyTask& task : study.tasks) task.not_made = "its host " + host + " has no score of it either";
}

}  // namespace saccade::cli

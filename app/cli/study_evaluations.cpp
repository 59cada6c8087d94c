#include "app/cli/study_evaluations.h"

#include "analysis/remote/mirror.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr double kSeconds = 1900;  // for one answer; the agent of a host takes at most 1800 for a command

EvaluatedStudy answer_of(const OnHost& study, const StudyEvaluation& wanted) {
  const Frame answer = ask_host(
      study.host,
      {{"ask", "study-evaluate"}, {"study", study.name}, {"split", wanted.split}, {"tokens", wanted.tokens}, {"length", wanted.length}},
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

EvaluatedStudy evaluate_on_host(const OnHost& study, const StudyEvaluation& evaluation,
                                const std::function<void(const std::string&)>& say) {
  EvaluatedStudy evaluated;
  for (int64_t made = 0; !evaluated.complete; made = evaluated.made) {
    evaluated = answer_of(study, evaluation);
    evaluated.made += made;
    if (!evaluated.complete) say(std::to_string(evaluated.made) + " evaluations made on " + study.host);
  }
  const HostProfile profile = load_host(study.host);
  const auto channel = Channel::open(study.host, profile);
  Mirror mirror(study.host, profile);
  for (const fs::path& file : evaluated.files) mirror.fetch(*channel, study.name + "/" + file.string());
  return evaluated;
}

}  // namespace saccade::cli

#pragma once
#include <functional>
#include <string>

#include "analysis/studies/report/numbers.h"
#include "app/cli/host_call.h"

namespace saccade::cli {

/// How a host evaluates; each may be empty.
struct EvaluationThere {
  std::string data;           ///< folder there with the files of the study's tasks
  std::string devices, jobs;  ///< of that machine, in place of those of the study's queues
};

/// Has a host make the evaluations that a report of `evaluation` needs of a study there, and the scores on its tasks, since checkpoints
/// stay on it, and fetches them into the mirror. `say` hears how far it is. Throws Error.
EvaluatedStudy evaluate_on_host(const OnHost& study, const StudyEvaluation& evaluation, const EvaluationThere& how,
                                const std::function<void(const std::string&)>& say);
/// Makes the evaluations, then the scores on tasks, that a report needs, until `seconds` are up: evaluate_study(), study_scores(). Throws
/// Error.
EvaluatedStudy evaluate_here(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                             const StudyWorkers& workers = {});

/// The study's tasks take their files from this folder, where it is not empty.
void choose_data(Study& study, const std::string& data);
/// A report makes nothing: it shows what training recorded and the scores that stand in the runs.
void show_what_is_there(Study& study);
/// A report makes no scores here, since the host of its runs has made those that can be made.
void show_scores_of_host(Study& study, const std::string& host);

}  // namespace saccade::cli

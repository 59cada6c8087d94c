#pragma once
#include <functional>
#include <string>

#include "analysis/studies/report_numbers.h"
#include "app/cli/host_call.h"

namespace saccade::cli {

/// Has a host make the evaluations that a report of `evaluation` needs of a study there, and the scores on its tasks with the files in
/// `data` (a folder there; may be empty), since checkpoints stay on it, and fetches them into the mirror. `say` hears how far it is. Throws
/// Error.
EvaluatedStudy evaluate_on_host(const OnHost& study, const StudyEvaluation& evaluation, const std::string& data,
                                const std::function<void(const std::string&)>& say);
/// Makes the evaluations, then the scores on tasks, that a report needs, until `seconds` are up: evaluate_study(), study_scores(). Throws
/// Error.
EvaluatedStudy evaluate_here(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds);

/// The study's tasks take their files from this folder, where it is not empty.
void choose_data(Study& study, const std::string& data);
/// A report makes nothing: it shows what training recorded and the scores that stand in the runs.
void show_what_is_there(Study& study);

}  // namespace saccade::cli

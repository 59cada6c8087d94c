#pragma once
#include <functional>
#include <string>

#include "analysis/studies/report_numbers.h"
#include "app/cli/host_call.h"

namespace saccade::cli {

/// Has a host make the evaluations that a report of `evaluation` needs of a study there, since checkpoints stay on it, and fetches them
/// into the mirror. `say` hears how far it is. Throws Error.
EvaluatedStudy evaluate_on_host(const OnHost& study, const StudyEvaluation& evaluation, const std::function<void(const std::string&)>& say);

}  // namespace saccade::cli

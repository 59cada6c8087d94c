#pragma once
#include <string>
#include <vector>

#include "analysis/inspection/text_sources.h"
#include "analysis/runs/run_records.h"
#include "models/tasks/symbol_task.h"

namespace saccade {

/// What an example of a task on symbols asks for, as far as it stood in one place before. Queries in a row whose sources are in a row are
/// one answer.
std::vector<KnownAnswer> answers_of(const SymbolExample& example);

/// The same of a sample that a run on `task` captured while it trained: of the example of the validation split that begins with its tokens
/// and asks for the same. None of a sample of text (`task` empty), nor where none of the first examples does or the
/// task is not known, as tasks may have changed.
std::vector<KnownAnswer> answers_of(const Capture& sample, const std::string& task);

}  // namespace saccade

#pragma once

#include "analysis/runs/run_records.h"
#include "models/json.h"

namespace saccade {

/// Records as the journal keeps them: keys in a fixed order, numbers with all their digits, "NaN", "Infinity" and
/// "-Infinity" as text. The key "type" tells them apart: step, evaluation, statistics, task, and from the run itself: state, resume.
using Record = nlohmann::ordered_json;

Record to_record(const StepRecord& step);
Record to_record(const EvaluationRecord& evaluation);
Record to_record(const DataRecord& data);
Record to_record(const StatisticsRecord& statistics);
Record to_record(const MemoryRecord& memory);
Record to_record(const TaskScoreRecord& scores);
Record state_record(RunState state, int64_t step, const std::string& message);
/// Training goes on from a checkpoint: what was recorded behind `step` no longer counts. `repeats`, where not negative: what was lost
/// of the journal from the record of this number on is all recorded again.
Record resume_record(int64_t step, int64_t repeats = -1);

/// Throw nlohmann::json exceptions when something is missing or of another type.
StepRecord step_from(const Record& record);
EvaluationRecord evaluation_from(const Record& record);
StatisticsRecord statistics_from(const Record& record);
MemoryRecord memory_from(const Record& record);
TaskScoreRecord task_scores_from(const Record& record);

Record json_number(double value);
double number_from(const Record& value);

/// Throws DataError when it names no state.
RunState parse_run_state(const std::string& text);

}  // namespace saccade

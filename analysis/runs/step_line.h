#pragma once
#include <optional>
#include <string_view>

#include "analysis/runs/run_records.h"

namespace saccade {

/// The step record in the body of a journal's line (up to the comma before its CRC), when it is written just as to_record(StepRecord)
/// writes it; else nothing, and the line has to be read as any JSON. Twenty times as fast as that.
std::optional<StepRecord> read_step_line(std::string_view body, int64_t number);

}  // namespace saccade

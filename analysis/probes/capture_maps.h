#pragma once
#include "analysis/runs/run_records.h"

namespace saccade {

/// What the maps of a capture mean (models/model.h says their shapes).

/// Null when there is none of that name and layer.
const CapturedMap* find_map(const Capture& capture, const std::string& name, int64_t layer);
/// Throws UsageError when there is none, DataError when it has another rank or size than its shape says.
const CapturedMap& require_map(const Capture& capture, const std::string& name, int64_t layer, int rank);
/// Throws UsageError when the map's first dimension has no such head.
void require_head(const CapturedMap& map, int64_t head);

/// The elements or chunks that a query chose; empty for none.
std::vector<int64_t> selected_at(const Capture& capture, int64_t layer, int64_t head, int64_t query);
/// The earlier splits that Avey's ranker chose for a split.
std::vector<int64_t> chosen_splits(const Capture& capture, int64_t split);
/// Tokens in a chunk or split; 0 when nothing of that kind is chosen.
int64_t candidate_size(const Capture& capture, int64_t layer);

/// The name under which a capture keeps that size, as a map of one value and layer −1.
inline constexpr const char* kCandidateSize = "candidate_size";

}  // namespace saccade

#pragma once
#include "analysis/runs/run_records.h"

namespace saccade {

/// What the maps of a capture mean (models/probe.h says their shapes).

/// Of a layer; `layer` says nothing for a kind that is_of_model(). Null when there is none.
const CapturedMap* find_map(const Capture& capture, MapKind kind, int64_t layer);
/// Throws UsageError when there is none, DataError when it has another rank or size than its shape says.
const CapturedMap& require_map(const Capture& capture, MapKind kind, int64_t layer, int rank);
/// Rows first … first + count of one head of a map [H, rows, columns], from memory or from where they are stored. Throws DataError.
std::vector<float> rows_of(const Capture& capture, const CapturedMap& map, int64_t head, int64_t first, int64_t count);
/// Throws UsageError when the map's first dimension has no such head.
void require_head(const CapturedMap& map, int64_t head);

/// "layer 3", in a hybrid stack "layer 3 (Attention window 64)".
std::string layer_words(const Capture& capture, int64_t layer);
/// Layers without a map of their reads, of those that are known to exist.
std::vector<int64_t> layers_without_reads(const Capture& capture);

/// What the queries of a layer chose among; null where they read from all there is.
const Selection* find_selection(const Capture& capture, int64_t layer);
/// Whether queries of a layer chose among chunks or splits, which hold several tokens.
bool chooses_parts(const Capture& capture, int64_t layer);
/// Tokens in a chunk or split; 0 when nothing of that kind is chosen.
int64_t candidate_size(const Capture& capture, int64_t layer);
/// The map of candidates' scores that goes with the selection; null where elements or nothing are chosen.
const CapturedMap* find_scores(const Capture& capture, int64_t layer);

/// The elements or chunks that a query chose; empty for none.
std::vector<int64_t> selected_at(const Capture& capture, int64_t layer, int64_t head, int64_t query);
/// The earlier splits that Avey's ranker chose for a split.
std::vector<int64_t> chosen_splits(const Capture& capture, int64_t split);

/// The map that shows a layer best: scores of candidates where parts are chosen, else the weights.
MapKind main_map(const Capture& capture, int64_t layer);

}  // namespace saccade

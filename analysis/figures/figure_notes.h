#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// "One rate only: Transformer++, Avey. Tuned: DeltaNet." What searches for the best setting say of the runs of each label (short_words()),
/// in one sentence where they say the same of all; of more labels than kNamedGroups "Tuned: 5 of 26."; empty without `tuning`.
std::string tuning_note(const DrawnSet& drawn, const TuningOfRun& tuning);

/// Which labels' points are mid-schedule, of the curves whose note says so, and what that means; empty where none's are.
std::string schedule_note(const std::vector<Curve>& curves);

/// What stands in the note of a curve: words with commas between them, without those that are empty.
std::string joined_note(const std::string& one, const std::string& other);

inline constexpr const char* kMidSchedule = "mid-schedule";
inline constexpr const char* kBranchEnds = "branch ends";

}  // namespace saccade

#pragma once
#include <QString>

#include "analysis/runs/run.h"

namespace saccade::ui {

QString stateText(RunState state);  ///< "Running", "Stopped by a crash": group titles and table cells
bool isActive(RunState state);      ///< a process is, or will soon be, at work on it
bool canResume(RunState state);     ///< its process is gone and steps are missing

/// Last values, NaN where nothing was measured yet. Losses in nats per token, means over domains; infinite where they were NaN or infinite.
struct RunNumbers {
  double loss, ood, tokens_per_second, seconds_left;
};
RunNumbers numbers_of(const Run& run);

/// Since a running run has last recorded anything, where that is longer than its steps explain: a minute and twenty steps. NaN: it speaks,
/// or is not running.
double seconds_silent(const Run& run);

/// "43 %, 4 min left", "Silent for 7 min", "Stopped": what it is doing; while it runs, how far it is.
QString state_now(const Run& run);

/// Records of its journal are lost.
bool is_damaged(const Run& run);
/// "damaged"
QString damaged_word();

/// "4 min left · loss 3.41 · OOD 4.02 · 12.3 ktok/s"; of a damaged run behind damaged_word().
QString summary_of(const Run& run);

QString formatLoss(double value, int decimals);  ///< 3.41; 84.3 T once it has run away
QString formatCount(double count);               ///< 12.3 k, 1.9 M
QString formatBytes(double bytes);               ///< 3.1 GiB
QString formatDuration(double seconds);          ///< 46 s, 4 min, 2 h 10 min

}  // namespace saccade::ui

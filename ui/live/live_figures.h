#pragma once
#include <QString>
#include <vector>

#include "analysis/figures/figure.h"

namespace saccade::ui {

class RunList;

/// What the reader chose on the Live page.
struct LiveChoice {
  XAxis x = XAxis::tokens;
  bool log_x = false, log_y = false;
  int smoothing = 0;   ///< steps of the centred mean; 0: off
  std::string domain;  ///< of the per-domain card; empty: the first
};

/// Training, validation and OOD loss of all runs; where a run diverged a mark says so. Training losses of more than six runs would
/// cover the rest: then only that of `current` is shown, and the legend says whose it is.
Figure live_loss_figure(const RunSet& runs, const LiveChoice& choice, const RunSet& among, const Run* current);
/// A series recorded at every step, thin, and smoothed as the training loss is.
Figure step_figure(const RunSet& runs, const std::string& name, bool log_y, const LiveChoice& choice, const RunSet& among);
/// OOD loss minus in-domain validation loss.
Figure gap_figure(const RunSet& runs, const LiveChoice& choice, const RunSet& among);

/// OOD domains of any of the runs, in the order met.
std::vector<std::string> all_domains(const RunSet& runs);
/// One line per run that ended badly: what, at which step, why. Empty: none did.
QString trouble(const RunList& list);

}  // namespace saccade::ui

#pragma once
#include <QString>
#include <QStringList>
#include <array>
#include <optional>
#include <vector>

#include "ui/charts/prepared_figure.h"
#include "ui/live/exact_parts.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

/// What the reader chose on the Live page.
struct LiveChoice {
  XAxis x = XAxis::tokens;
  bool log_x = false, log_y = false, symmetric_x = false, symmetric_y = false;
  Smoothing smoothing{};
  Spread spread = Spread::deviation;
  QString domain;                                           ///< of the per-domain card; empty: the first
  bool ratio = false;                                       ///< of OOD to pre-training loss, in place of their difference
  bool each_domain = false;                                 ///< every OOD domain among the losses, in place of their mean
  QString step_series = QStringLiteral("gradient_norm");    ///< or "learning_rate"
  QString resource = QStringLiteral("tokens_per_second");   ///< or "device_memory", "process_memory"
  QString selection = QStringLiteral("captured_mass");      ///< statistic of the card of reads, where the run records it
  QString answers = QStringLiteral("validation/accuracy");  ///< series of the card of right answers, where a run has it
  /// Parts of the x axis that are looked at, of the charts of every step; what is in them is read in full.
  std::optional<std::array<double, 2>> loss_part{}, gradient_part{}, speed_part{};
  std::optional<qint64> marked_step{};  ///< of the current run: what Inspect shows
  QString current;                      ///< directory of the run that the single cards show; the first one where it is not shown
};

/// Statistics that tell what is read or chosen, beside the entropy; the first that a run has is shown unless another was chosen.
inline constexpr const char* kSelections[] = {"captured_mass", "margin",         "churn",    "dead_chunks",
                                              "usage_entropy", "chunk_distance", "distance", "outside_256"};

/// The figures of the page, ready to be shown.
struct LiveFigures {
  enum Place { loss, gap, gradient, speed, domain, heads, layers, captured, accuracy, count };
  std::shared_ptr<const PreparedFigure> figure[count];
  bool coming[count] = {};  ///< nothing to show yet, but the run at work is going to measure it: its place is kept
  QStringList domains;
  QString chosen_domain;
  QString single, name, statistic;   ///< of the cards of a single run: its directory, what it is called, its statistic of layers
  QStringList selections;            ///< statistics of reads that the run of the single cards records, of kSelections
  QString selection;                 ///< the one that is shown
  QStringList answers;               ///< series of right answers that any of the runs has: training domains, OOD mean, each OOD domain
  QString answer;                    ///< the one that is shown
  qint64 step = -1;                  ///< of the last statistics
  bool by_architecture[count] = {};  ///< more things than can be told apart: means, see calm_set()
  QString trouble;
  QString crashed, crashed_name;  ///< directory of the first run that crashed and can go on; empty: none
};

/// What was read of parts of charts, kept for the next time.
struct LiveParts {
  ExactParts loss, gradient, speed;
};

/// May take long. `before`: curves unchanged since are taken over.
LiveFigures live_figures(const ShownRuns& shown, const LiveChoice& choice, const LiveFigures& before, LiveParts& parts);

/// Training, validation and OOD loss; where a run diverged a mark says so. Training losses of more than six things would cover the rest:
/// then only those of `focus` are shown, and the legend says whose they are.
Figure live_loss_figure(const DrawnSet& drawn, const LiveChoice& choice, const DrawnRuns& focus, LiveParts& parts);

/// What a chart of noisy values of every step draws: more than six things would be one solid block, so then the mean of each architecture
/// with its band, and the `focus` by itself over them.
DrawnSet calm_set(const DrawnSet& drawn, const DrawnRuns& focus);

/// OOD domains of any of the runs, in the order met.
std::vector<std::string> all_domains(const RunSet& runs);
/// A line per kind of bad end: how many, who first, at which step, why. Empty: none.
QString trouble(const DrawnSet& drawn);

}  // namespace saccade::ui

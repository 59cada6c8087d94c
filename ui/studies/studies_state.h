#pragma once
#include <QByteArray>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "analysis/studies/queue.h"
#include "analysis/studies/study_progress.h"

namespace saccade::ui {

/// A study's run as its table tells it.
struct StudyRunLine {
  QString name = {}, directory = {}, cell = {}, state = {}, problem = {};
  std::optional<double> value = {};  ///< that it tries of what the study searches
  qint64 seed = 1;
  QStringList branches = {};  ///< directories of its cooldowns that have ended
  qint64 step = 0, steps = 0;
  double validation = 0, ood = 0;  ///< nats per token; NaN: not measured
  bool failed = false;             ///< given up, or diverged
  bool best = true;                ///< at the best value of its cell as far as that is known, or nothing is searched
  bool searched = false;           ///< the search of its cell has ended: of one that goes on another value may win yet
};

struct StudyLine {
  QString directory = {}, name = {}, question = {}, source = {}, state = {};
  QString host = {};     ///< that it is mirrored from
  QString cluster = {};  ///< its runs go there; empty: this machine
  QString problem = {};  ///< why nothing more is started, or why it cannot be read
  StudyProgress progress = {};
  double seconds = 0;  ///< of training so far
  std::optional<double> budget_hours = {};
  bool queued = false, complete = false, readable = true;
  std::vector<StudyRunLine> runs = {};
  QString tuned = {};       ///< what is searched, "learning rate"; empty: nothing
  QStringList tuning = {};  ///< a line for each cell
};

struct QueueLine {
  QString device = {}, name = {}, directory = {}, added = {};
  qint64 id = 0;
  bool study = true;
  QString state = {};
  double share = 0, seconds_left = 0;  ///< NaN: not known
};

struct QueueHead {
  QString device = {};
  bool paused = false, worked = false;
  qint64 jobs = 1;
  double share = 0, seconds_left = 0;  ///< of all entries of which it is known
  bool at_least = false;               ///< others take more
};

/// Whose queues are meant, and where it is a host, what it said last.
struct QueuesAsked {
  QString host = {};     ///< empty: this machine
  QByteArray told = {};  ///< by `saccade --json queue list --on HOST`; empty: nothing yet
  QString problem = {};  ///< why it said nothing
};

/// What the page shows, read at one time.
struct StudiesState {
  std::vector<StudyLine> studies = {};  ///< by name
  QString host = {};                    ///< whose queues these are; empty: this machine
  bool reached = true, told = true;     ///< the host is; it has said what its queues are
  QString host_text = {};               ///< how the host stands; why it does not say more
  std::vector<QueueHead> queues = {};
  std::vector<QueueLine> entries = {};  ///< in their order, device by device
};

/// The studies that stand in `folders`, and those that wait in a queue of this machine. Takes as long as reading their runs' summaries.
/// How far the entries of a host are stands in its mirror.
StudiesState read_studies(const QStringList& folders, const QueuesAsked& asked = {});

}  // namespace saccade::ui

#pragma once
#include <QFrame>
#include <optional>

#include "models/json.h"
#include "ui/configure/config_draft.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace saccade::ui {

/// What is written is a fork: of which run, from which of its checkpoints. Hidden while it is none.
class ForkBar : public QFrame {
  Q_OBJECT
 public:
  explicit ForkBar(QWidget* parent = nullptr);

  /// False where the run has no checkpoint. `step` 0: the newest.
  bool setRun(const QString& directory, const QString& name, qint64 step = 0);
  void clear();
  QString run() const { return run_; }  ///< the parent's directory; empty: no fork
  qint64 step() const;
  QWidgetList stops() const;

 Q_SIGNALS:
  void stepChanged();
  void closed();  ///< a run of its own is wanted after all

 private:
  QString run_;
  QLabel* title_;
  QComboBox* steps_;
  QToolButton* close_;
};

/// What a fork sets otherwise than its parent: "training.steps=2000".
QStringList fork_assignments(const nlohmann::json& parent, const nlohmann::json& draft);
/// The config that a fork would train with, as `saccade fork` resolves it, or what is wrong with it.
std::optional<RunConfig> resolve_fork(const QString& run, qint64 step, const ConfigDraft& draft, ConfigProblem* problem);

}  // namespace saccade::ui

#pragma once
#include <QHash>
#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "ui/latest_job.h"
#include "ui/studies/studies_state.h"

class QAction;
class QLabel;
class QListWidget;
class QPushButton;
class QToolButton;
class QVBoxLayout;

namespace saccade::ui {

class Card;
class LinesTable;
class NewStudy;
class ProgramCall;
class QueueView;
class Session;
class TwoColumns;

/// Studies in the folder of runs and the queues of this machine and of hosts: how far they are, what failed, and what goes on next. All
/// that is changed is changed by the command line program, and trained by the queue's own process, so nothing depends on this window.
class StudiesPage : public QWidget {
  Q_OBJECT
 public:
  StudiesPage(Session& session, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  struct Actions {
    QAction *open_runs, *compare, *go_on, *stop, *report;
  };
  void makeActions();
  QWidget* makeStudies();
  QWidget* makeNone(QWidget* parent);
  QWidget* makeDetails();
  void refresh(bool urgent = false);
  void showState(StudiesState state);
  void showDetails();
  void enableActions();
  const StudyLine* selected() const;
  void openRuns();
  void compareBest();
  void makeReport();
  void askForJobs();
  void beginStudy();  ///< goes to where one is chosen
  void call(const QStringList& arguments, const QString& note);

  Session& session_;
  StudiesState state_;
  LatestJob<StudiesState> job_;
  QTimer timer_;
  QTimer jobs_timer_;
  QPointer<ProgramCall> report_call_, jobs_call_;
  QString jobs_of_;               ///< the study that the scheduler was asked about last
  QHash<QString, QString> jobs_;  ///< what it says of the runs, by their names
  Actions actions_{};
  TwoColumns* columns_;
  QVBoxLayout* left_ = nullptr;
  Card *studies_card_, *queue_card_, *details_card_, *new_card_;
  QWidget* none_;  ///< in place of the studies where there are none
  LinesTable *studies_, *runs_;
  QueueView* queue_;
  QListWidget* tuning_;
  NewStudy* new_;
  QLabel *details_, *studies_text_;
};

}  // namespace saccade::ui

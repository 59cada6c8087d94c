#pragma once
#include <QWidget>

class QAction;
class QLabel;
class QMenu;

namespace saccade::ui {

class Card;
class DifferencesView;
class GroupingChoice;
class QueueCalls;
class QueuedRuns;
class RunActions;
class RunTree;
class RunsView;
class Session;
struct Difference;
struct QueuedRun;

/// All runs of the folder as a table, with what waits for this machine; what can be done with the chosen one, and in what the chosen ones
/// differ.
class RunsPage : public QWidget {
  Q_OBJECT
 public:
  explicit RunsPage(Session& session, QWidget* parent = nullptr);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeTable();
  QWidget* makeDetails();
  void makeActions();
  void follow();
  void showMenu(const QPoint& at);
  void addQueueActions(QMenu& menu, const QueuedRun& run);
  void selectCurrent();
  void lookForQueued();
  void updateDetails();
  void showOne(const QStringList& lines, const std::vector<Difference>& settings);
  void showSeveral(const QStringList& members);
  QStringList marked() const;  ///< directories of the runs that are marked, those of groups too

  Session& session_;
  RunActions* actions_;
  QueuedRuns* queued_;
  QueueCalls* queue_;
  RunTree* tree_;
  RunsView* table_;
  GroupingChoice* group_ = nullptr;
  QAction *choose_group_ = nullptr, *fold_ = nullptr, *unfold_ = nullptr;
  QLabel* details_;
  DifferencesView* differs_;
  Card* selected_ = nullptr;  ///< says what stands below the table
  bool selecting_ = false;
  bool missing_ = false;  ///< the current run has no row yet, and is selected when it gets one
};

}  // namespace saccade::ui

#pragma once
#include <QElapsedTimer>
#include <QPointer>
#include <QWidget>

#include "ui/studies/studies_state.h"

class QAction;
class QLabel;

namespace saccade::ui {

class Card;
class LinesTable;
class ProgramCall;
class QueueCalls;
class Session;
class WhereChoice;

/// What waits for the devices of this machine or of a host, in order, and what can be done to it. A host is asked every few seconds while
/// it is seen and the host is connected, over the connection that the window keeps; one that is not is told as such, with what it
/// said last.
class QueueView : public QWidget {
  Q_OBJECT
 public:
  /// Keys work on `page`.
  QueueView(Session& session, QWidget* page);
  void addControls(Card& card);

  QueuesAsked asked() const;  ///< what is to be read
  void showState(const StudiesState& state);

 Q_SIGNALS:
  void stale();  ///< it is to be read again, at once

 private:
  struct Actions {
    QAction *pause, *pause_now, *work, *up, *down, *remove;
  };
  void makeActions(QWidget* page);
  void askHost();
  void chooseHost();
  void enableActions();
  void move(int by);
  QString place() const;  ///< a host; empty: this machine
  const QueueLine* entry() const;
  QString device() const;  ///< of the entry that is marked, else the first queue
  QString text() const;

  Session& session_;
  QueueCalls* calls_;
  QString host_;  ///< empty: this machine
  QString host_text_;
  bool reached_ = true, told_ = true;
  std::vector<QueueHead> queues_;
  std::vector<QueueLine> entries_;
  QueuesAsked said_;  ///< by the host, last
  QPointer<ProgramCall> call_;
  QElapsedTimer since_;  ///< the last call
  Actions actions_{};
  WhereChoice* where_;
  LinesTable* table_;
  QLabel* text_;
};

}  // namespace saccade::ui

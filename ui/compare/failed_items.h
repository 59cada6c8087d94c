#pragma once
#include <QMenu>
#include <QObject>
#include <QPoint>
#include <QPointer>
#include <QString>
#include <vector>

#include "analysis/figures/score_figures.h"
#include "analysis/tasks/scored_items.h"
#include "ui/latest_job.h"

class QWidget;

namespace saccade::ui {

class Session;

/// What stands behind a score: a menu with the items that failed, of which the chosen one is opened in Inspect. The items are read in a
/// thread.
class FailedItemsMenu : public QObject {
  Q_OBJECT
 public:
  FailedItemsMenu(Session& session, QWidget* over);

  /// `sources`: of one dot or cell; the menu stands at `at`, on the screen.
  void offer(const std::vector<ScoreSource>& sources, const QPoint& at);
  QMenu* menu() const { return menu_; }  ///< that is open; null: none

 private:
  struct Place {
    QString directory, name;  ///< of the run, and what it is called
    ScoreSource source;       ///< without its run
  };
  struct Found {
    Place place;
    FailedItems failed;
    QString problem;
  };
  struct Offered {
    QPoint at;
    std::vector<Found> runs;
  };
  static Found read(const Place& place);
  void show(const Offered& offered);
  void addItems(QMenu& menu, const Found& found, size_t most);
  void open(const Found& found, size_t index);

  Session& session_;
  QWidget* over_;
  QPointer<QMenu> menu_;
  LatestJob<Offered> job_;
};

}  // namespace saccade::ui

#pragma once
#include <QWidget>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/figures/score_figures.h"
#include "ui/latest_job.h"

class QComboBox;
class QStackedWidget;
class QTabBar;
class QToolButton;

namespace saccade::ui {

class FailedItemsMenu;
class RunsChart;
class Session;
struct ScoreView;

/// The charts of the page Compare, one at a time: trajectories, loss by position, any number of the runs by another, scores of tasks.
class CompareCharts : public QWidget {
  Q_OBJECT
 public:
  CompareCharts(Session& session, QWidget* trajectories, QWidget* parent);
  int leastWidth() const;    ///< of the chart that is shown
  bool showsScores() const;  ///< whether that is the one of scores
  std::string task() const;  ///< which tasks it shows; see ScoreChoice

 Q_SIGNALS:
  void chartChanged();  ///< another one is shown
  void taskChanged();   ///< other tasks are

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Of the shown runs: settings that differ, domains, tasks.
  struct Found {
    std::vector<std::string> settings;
    std::set<std::string> trained, unseen, tasks;
  };
  void show(int index);
  void makePosition();
  void makeNumbers();
  void makeScores();
  QString noScores() const;
  const ScoreView& scoreView() const;
  void offerFailed(const std::function<std::vector<ScoreSource>(const DrawnSet&, const std::string& task)>& sources);
  void gather(bool urgent);  ///< what the shown runs have to choose from, in a thread
  void offer(const Found& found);
  QComboBox* choice(const QString& name, const QString& help, const char* key, RunsChart& chart);

  Session& session_;
  LatestJob<Found> gathering_;
  QTabBar* tabs_;
  QStackedWidget* stack_;
  RunsChart *position_ = nullptr, *numbers_ = nullptr, *scores_ = nullptr;
  QComboBox *domain_ = nullptr, *up_ = nullptr, *across_ = nullptr, *fit_ = nullptr, *task_ = nullptr, *score_view_ = nullptr;
  QToolButton* logarithmic_ = nullptr;
  FailedItemsMenu* failed_;
};

}  // namespace saccade::ui

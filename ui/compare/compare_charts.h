#pragma once
#include <QWidget>

class QComboBox;
class QStackedWidget;
class QTabBar;
class QToolButton;

namespace saccade::ui {

class RunsChart;
class Session;

/// The charts of the page Compare, one at a time: trajectories, loss by position, any number of the runs by another, scores of tasks.
class CompareCharts : public QWidget {
  Q_OBJECT
 public:
  CompareCharts(Session& session, QWidget* trajectories, QWidget* parent);
  int leastWidth() const;  ///< of the chart that is shown

 Q_SIGNALS:
  void chartChanged();  ///< another one is shown

 private:
  void show(int index);
  void makePosition();
  void makeNumbers();
  void makeScores();
  void offerChoices();  ///< what the shown runs have: domains, settings that differ, tasks
  QComboBox* choice(const QString& name, const QString& help, const char* key, RunsChart& chart);

  Session& session_;
  QTabBar* tabs_;
  QStackedWidget* stack_;
  RunsChart *position_ = nullptr, *numbers_ = nullptr, *scores_ = nullptr;
  QComboBox *domain_ = nullptr, *up_ = nullptr, *across_ = nullptr, *fit_ = nullptr, *task_ = nullptr;
  QToolButton* logarithmic_ = nullptr;
};

}  // namespace saccade::ui

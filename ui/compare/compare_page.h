#pragma once
#include <QWidget>
#include <optional>

#include "analysis/comparison/comparison.h"
#include "ui/charts/prepared_figure.h"
#include "ui/compare/comparison_table.h"
#include "ui/latest_job.h"

class QComboBox;
class QLabel;
class QScrollArea;
class QToolButton;

namespace saccade::ui {

class Card;
class CompareCharts;
class FigureView;
class FittedTable;
class ScoreTestsCard;
class Session;

/// Architectures at equal pre-training loss: trajectories with a line that can be dragged, and what they say in tables.
class ComparePage : public QWidget {
  Q_OBJECT
 public:
  struct Made {
    Comparison comparison;
    std::shared_ptr<const PreparedFigure> figure;
    std::vector<double> entropies;  ///< of every row
  };
  ComparePage(Session& session, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  FittedTable* makeTable(ComparisonTable& table, const QString& name);
  QWidget* makeTables();
  int widestTable() const;
  void limitTables();
  void chooseTables();
  void fitWords();
  void refresh();
  void show(const Made& made);
  void updateDomains();
  void queueMoreSeeds();
  std::string domain() const;
  PretrainingLoss pretraining() const;

  Session& session_;
  LatestJob<Made> job_;
  std::optional<double> at_loss_;  ///< where the reader put the line; else common_loss()
  QString wanted_domain_;          ///< chosen by the reader; empty: the mean of all
  TuningOfRun tuning_;             ///< what studies say of the runs they made
  bool stale_ = true;
  FigureView* trajectories_;
  CompareCharts* charts_;
  Card *trajectory_card_, *equal_card_, *end_card_;
  QComboBox *domain_, *pretraining_, *split_;
  QToolButton *common_, *more_seeds_;
  ComparisonTable *equal_, *end_;
  FittedTable *equal_view_, *end_view_;
  ScoreTestsCard* tests_ = nullptr;  ///< in place of the table at equal losses, beside the chart of scores
  QWidget* tables_ = nullptr;        ///< with the words below them
  QLabel* verdict_;
  QScrollArea* words_ = nullptr;  ///< what verdict_ stands in
  QObject while_whole_;           ///< receives what widgets below still send while the page, no longer one, hides and deletes them
};

}  // namespace saccade::ui

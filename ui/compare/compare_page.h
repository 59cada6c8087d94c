#pragma once
#include <QWidget>
#include <optional>

#include "analysis/comparison/comparison.h"

class QComboBox;
class QLabel;
class QTableView;
class QToolButton;

namespace saccade::ui {

class Card;
class ComparisonTable;
class FigureView;
class Session;

/// Architectures at equal pre-training loss: trajectories with a line that can be dragged, and what they say in tables.
class ComparePage : public QWidget {
  Q_OBJECT
 public:
  ComparePage(Session& session, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QTableView* makeTable(ComparisonTable& table, const QString& name);
  QWidget* makeTables();
  void addCopyButton(Card& card, const ComparisonTable& table);
  void refresh();
  void updateDomains();
  std::string domain() const;
  PretrainingLoss pretraining() const;

  Session& session_;
  std::optional<double> at_loss_;  ///< where the reader put the line; else the lowest loss that all have reached
  TuningOfRun tuning_;             ///< what studies say of the runs they made
  bool stale_ = true;
  FigureView* trajectories_;
  Card *trajectory_card_, *equal_card_, *end_card_;
  QComboBox *domain_, *pretraining_;
  QToolButton* common_;
  ComparisonTable *equal_, *end_;
  QTableView *equal_view_, *end_view_;
  QLabel* verdict_;
};

}  // namespace saccade::ui

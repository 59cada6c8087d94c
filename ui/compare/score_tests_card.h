#pragma once
#include <QWidget>
#include <functional>
#include <string>
#include <vector>

#include "analysis/figures/score_comparison.h"
#include "ui/latest_job.h"

namespace saccade::ui {

class Card;
class ComparisonTable;
class FittedTable;
class Session;

/// The scores of the shown runs in numbers: each with its error, its difference to the first and the test of it (compare_scores), as
/// `saccade compare` prints them. Nothing where no shown run was scored.
class ScoreTestsCard : public QWidget {
  Q_OBJECT
 public:
  /// `task`: which tasks, asked for in the window's thread; see ScoreChoice.
  ScoreTestsCard(Session& session, std::function<std::string()> task, QWidget* parent);
  void refresh() { make(true); }
  bool isEmpty() const { return empty_; }
  void limit(int widest);   ///< as FittedTable::limit()
  void fitRows();           ///< is as high as its rows, at most
  int wholeHeight() const;  ///< with all of them
 Q_SIGNALS:
  void changed();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Made {
    ScoreComparison scores;
    std::vector<QString> directories;  ///< of the first seed of every row
  };
  void make(bool urgent);
  void show(const Made& made);

  Session& session_;
  std::function<std::string()> task_;
  ComparisonTable* table_;
  FittedTable* view_;
  Card* card_;
  LatestJob<Made> job_;
  bool empty_ = true;
  int widest_ = 0;
};

}  // namespace saccade::ui

#pragma once
#include <QTableWidget>
#include <vector>

#include "ui/runs/differences.h"

namespace saccade::ui {

/// In what runs differ: a row per setting, a column per run.
class DifferencesView : public QTableWidget {
  Q_OBJECT
 public:
  explicit DifferencesView(QWidget* parent = nullptr);
  /// `heads`: what the columns are called; empty: no header line.
  void setDifferences(const std::vector<Difference>& differences, const QStringList& heads);

 private:
  std::vector<Difference> shown_;
  QStringList heads_;
};

}  // namespace saccade::ui

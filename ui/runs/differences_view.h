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
  /// `heads`: what the columns are called; empty: no header line. `against_first`: the first run is what others are measured against, and
  /// what they have otherwise is bold.
  void setDifferences(const std::vector<Difference>& differences, const QStringList& heads, bool against_first = false);

 private:
  std::vector<Difference> shown_;
  QStringList heads_;
  bool against_first_ = false;
};

}  // namespace saccade::ui

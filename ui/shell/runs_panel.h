#pragma once
#include <QWidget>

class QLabel;
class QLineEdit;
class QListView;

namespace saccade::ui {

class DifferencesView;
class GroupedRuns;
class RunActions;
class Session;

/// The runs beside every page: find, show or hide, choose; and in what the chosen ones differ.
class RunsPanel : public QWidget {
  Q_OBJECT
 public:
  RunsPanel(Session& session, const RunActions& actions, QWidget* parent = nullptr);

 public Q_SLOTS:
  void focusFilter();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void updateCounts();
  void selectCurrent();
  void updateDifferences();
  void updateEmptyText();

  Session& session_;
  GroupedRuns* model_;
  QLineEdit* filter_;
  QListView* list_;
  QLabel* counts_;
  QLabel* empty_;
  QLabel* differs_title_;
  DifferencesView* differs_;
  bool selecting_ = false;
};

}  // namespace saccade::ui

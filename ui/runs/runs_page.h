#pragma once
#include <QWidget>

class QLabel;
class QSortFilterProxyModel;
class QTreeView;

namespace saccade::ui {

class Card;
class DifferencesView;
class Session;

/// All runs of the folder as a table, what can be done with the chosen one, and in what the chosen ones differ.
class RunsPage : public QWidget {
  Q_OBJECT
 public:
  explicit RunsPage(Session& session, QWidget* parent = nullptr);

 private:
  QWidget* makeTable();
  QWidget* makeDetails();
  void selectCurrent();
  void updateDetails();

  Session& session_;
  QSortFilterProxyModel* sorted_;
  QTreeView* table_;
  QLabel* details_;
  DifferencesView* differs_;
  Card* selected_ = nullptr;  ///< says what stands below the table
  bool selecting_ = false;
};

}  // namespace saccade::ui

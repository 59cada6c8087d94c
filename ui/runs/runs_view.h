#pragma once
#include <QTimer>
#include <QTreeView>

class QMenu;

namespace saccade::ui {

class RunTree;
class Session;

/// The table of the page Runs. Name, state and losses are seen wherever the page is wide enough for them, the other columns lie to their
/// right; what is folded, sorted by and left out is kept with the session.
class RunsView : public QTreeView {
  Q_OBJECT
 public:
  RunsView(Session& session, RunTree& tree, QWidget* parent);

  /// Columns to show or leave out.
  void addColumns(QMenu& menu);
  void foldAll(bool folded);                        ///< of the groups
  bool isInFolded(const QModelIndex& index) const;  ///< some row above it is folded

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void makeHeader();
  void followFolds();
  void unfold(const QModelIndex& parent, int first, int last);
  bool isUnfolded(const QModelIndex& index) const;
  void keepFold(const QModelIndex& index, bool unfolded);
  void fitColumns();
  void fitName();

  Session& session_;
  RunTree& tree_;
  QTimer fit_;
  int name_wanted_ = 0;  ///< pixels
};

}  // namespace saccade::ui

#pragma once
#include <QTreeView>
#include <optional>
#include <vector>

#include "ui/studies/lines_model.h"

class QSortFilterProxyModel;

namespace saccade::ui {

/// Lines of text to choose one of: sorted where a header is clicked, the chosen one kept by its key. Where not all columns have room, the
/// first one with a title, which holds names, loses the middle of its texts.
class LinesTable : public QTreeView {
  Q_OBJECT
 public:
  /// `sortable`: false where the order of the lines means something.
  LinesTable(const QString& name, const QStringList& titles, const QList<int>& numbers, bool sortable, QWidget* parent = nullptr);

  void setLines(std::vector<LinesModel::Line> lines);
  QString currentKey() const;
  void setCurrentKey(const QString& key);  ///< nothing where there is no such line
  LinesModel* lines() const { return model_; }

  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 Q_SIGNALS:
  void chosen();                    ///< another line, by the reader or because the last one went
  void opened(const QString& key);  ///< double click or Return

 private:
  void fitColumns();
  int titleWidth(int column) const;
  void measure(const std::optional<std::vector<int>>& changed);

  LinesModel* model_;
  QSortFilterProxyModel* sorted_;
  std::vector<int> held_;  ///< how wide each column's widest text has been since the lines are these
  bool filling_ = false;
};

}  // namespace saccade::ui

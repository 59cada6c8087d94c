#pragma once
#include <QAbstractTableModel>
#include <QStringList>
#include <QVariant>
#include <optional>
#include <vector>

namespace saccade::ui {

/// A table of texts, each line known by a key, under which it stays selected while its texts change.
class LinesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  struct Cell {
    QString text;
    QVariant sort = {};  ///< what to sort by; none: the text
    double share = -1;   ///< 0 … 1: a bar beneath the text
    bool alarm = false;  ///< in the colour of errors
    QString tip = {};
    bool strong = false;  ///< in bold
    bool operator==(const Cell&) const = default;
  };
  struct Line {
    QString key;
    std::vector<Cell> cells;
    bool operator==(const Line&) const = default;
  };
  enum Role { KeyRole = Qt::UserRole + 1, SortRole, ShareRole };

  /// `numbers`: columns that stand at the right.
  LinesModel(QStringList titles, QList<int> numbers, QObject* parent = nullptr);
  /// Rows that say something else than before; nothing where there are other lines, or another order of them.
  std::optional<std::vector<int>> setLines(std::vector<Line> lines);
  void setTitle(int column, const QString& title);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QStringList titles_;
  QList<int> numbers_;
  std::vector<Line> lines_;
};

}  // namespace saccade::ui

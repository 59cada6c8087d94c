#pragma once
#include <QTableView>
#include <vector>

namespace saccade::ui {

/// A table of names and numbers that does not scroll sideways: numbers are whole, names have what is left, and columns that have no room
/// beside them stand on pages of their own, each with the names.
class FittedTable : public QTableView {
  Q_OBJECT
 public:
  explicit FittedTable(QWidget* parent = nullptr);

  /// Asks for the room that all columns but the `optional` take, up to `widest` pixels; these have their place behind the others.
  void fit(int widest, const std::vector<int>& optional);
  /// The same for the columns as they are.
  void limit(int widest);
  /// With all its rows.
  int wholeHeight() const;

  int page() const { return page_; }
  int pages() const { return static_cast<int>(columns_.size()); }
  void showPage(int page);

 Q_SIGNALS:
  void pagesChanged();

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Column {
    int index, width;
  };
  int leastName() const;
  void share();

  std::vector<Column> all_;  ///< but the names, the optional ones last
  size_t needed_ = 0;        ///< of them are not optional
  std::vector<std::vector<int>> columns_{{}};
  int page_ = 0;
  int name_ = 0;  ///< what the longest name takes
};

}  // namespace saccade::ui

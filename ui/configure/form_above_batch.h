#pragma once
#include <QSplitter>

namespace saccade::ui {

/// Editors above the first batch. A form that is shorter than the page leaves the rest to the batch, until the edge between them is
/// dragged.
class FormAboveBatch : public QSplitter {
  Q_OBJECT
 public:
  FormAboveBatch(QWidget* editors, QWidget* batch, QWidget* parent);
  /// Pixels that the editor which is shown can use; 0: all.
  void setWanted(int height);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void share();

  int wanted_ = 0;
  bool dragged_ = false;
};

}  // namespace saccade::ui

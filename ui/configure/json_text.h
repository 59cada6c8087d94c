#pragma once
#include <QPlainTextEdit>

namespace saccade::ui {

/// Text with numbers before its lines, one of which can be marked as faulty.
class JsonText : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit JsonText(QWidget* parent = nullptr);
  /// The line that holds this character, and what is wrong there; −1: none is.
  void markFault(int position, const QString& why);
  int faultyLine() const { return faulty_; }  ///< from 0; −1: none

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  class Numbers;
  void paintNumbers(QPaintEvent* event);
  int numbersWidth() const;
  void showMark();

  Numbers* numbers_;
  int faulty_ = -1;
};

}  // namespace saccade::ui

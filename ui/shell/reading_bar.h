#pragma once
#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QToolButton;

namespace saccade::ui {

class RunList;

/// How far runs have been read, while that takes longer than a moment, with a button that ends it; after that how many are left, with one
/// that goes on. Hidden otherwise.
class ReadingBar : public QWidget {
  Q_OBJECT
 public:
  explicit ReadingBar(RunList& runs, QWidget* parent = nullptr);

 private:
  void look();

  RunList& runs_;
  QTimer timer_;         ///< runs while something is being read
  QElapsedTimer since_;  ///< the reading began
  QLabel* words_;
  QProgressBar* bar_;
  QToolButton* button_;
  bool halted_ = false;
};

}  // namespace saccade::ui

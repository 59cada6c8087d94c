#pragma once
#include <QStatusBar>

class QLabel;
class QToolButton;

namespace saccade::ui {

class Session;

/// Device, what is running, and the folder runs are in.
class StatusBar : public QStatusBar {
  Q_OBJECT
 public:
  explicit StatusBar(Session& session, QWidget* parent = nullptr);

 Q_SIGNALS:
  void folderClicked();

 private:
  void updateDevice();
  void updateRuns();

  Session& session_;
  QLabel* device_;
  QLabel* running_;
  QToolButton* folder_;
  bool asking_ = false;  ///< in another thread
};

}  // namespace saccade::ui

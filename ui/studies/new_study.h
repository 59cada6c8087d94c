#pragma once
#include <QWidget>

class QComboBox;
class QLineEdit;

namespace saccade::ui {

class Session;
class StudyStart;

/// Begins a study that comes with the program, one of the user's, or a file.
class NewStudy : public QWidget {
  Q_OBJECT
 public:
  explicit NewStudy(Session& session, QWidget* parent = nullptr);

 Q_SIGNALS:
  void queued(const QString& directory);

 private:
  void makeFields();
  void chooseFile();

  Session& session_;
  StudyStart* start_;
  QComboBox* studies_;
  QLineEdit* settings_;
};

}  // namespace saccade::ui

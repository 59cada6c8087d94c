#pragma once
#include <QJsonObject>
#include <QPointer>
#include <QTimer>
#include <QWidget>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace saccade::ui {

class ProgramCall;
class Session;

/// Begins a study, or adds what its file has more to one that stands there: what it will take is told before.
class NewStudy : public QWidget {
  Q_OBJECT
 public:
  explicit NewStudy(Session& session, QWidget* parent = nullptr);

 Q_SIGNALS:
  void queued(const QString& directory);

 private:
  void makeFields();
  void chooseFile();
  void plan(bool measure);
  void showPlan(const QJsonObject& plan, bool measured);
  void start();
  QString study() const;      ///< a name or a file
  QString directory() const;  ///< that it gets
  QStringList overrides() const;

  Session& session_;
  QTimer soon_;
  QPointer<ProgramCall> call_;
  QComboBox* studies_;
  QLineEdit* settings_;
  QDoubleSpinBox* budget_;
  QSpinBox *limit_, *jobs_;
  QLabel *question_, *takes_;
  QPushButton *measure_, *start_;
};

}  // namespace saccade::ui

#pragma once
#include <QJsonObject>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <functional>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QSpinBox;

namespace saccade::ui {

class ProgramCall;
class Session;
class WhereChoice;

/// Puts a study into the queue, or adds what its file has more to one that stands there: what it will take is told before. Where clusters
/// or hosts are set up (saccade cluster, host), it goes to one of them instead; the script of a cluster's jobs is shown before they are
/// submitted.
class StudyStart : public QWidget {
  Q_OBJECT
 public:
  explicit StudyStart(Session& session, QWidget* parent = nullptr);

  /// A study's name or file, with assignments for all its runs. What it takes is told a moment later.
  void setStudy(const QString& study, const QStringList& assignments = {});
  /// There is none, and why.
  void setNoStudy(const QString& why);
  /// Called before it is queued: the file that is queued; empty: not now. Without it the study itself.
  std::function<QString()> file_to_queue;
  QWidgetList stops() const;  ///< what Tab goes through

 Q_SIGNALS:
  void queued(const QString& directory);

 private:
  void makeFields();
  void plan(bool measure);
  void showPlan(const QJsonObject& plan, bool measured);
  void start();
  QString place() const;    ///< a host or a cluster; empty: this machine
  QString cluster() const;  ///< empty: this machine, or a host
  void showPlace();
  void takeItsJobs();
  void showDevices();
  void showScript(const QString& file);
  void submit(const QStringList& arguments);
  QStringList startArguments(const QString& file) const;
  QString directory() const;  ///< that it gets
  QStringList overrides() const;

  Session& session_;
  QString study_;
  QStringList assignments_;
  QTimer soon_;
  QPointer<ProgramCall> call_;
  WhereChoice* on_;
  int usual_jobs_ = 1;  ///< at a time, where the user says nothing
  QDoubleSpinBox* budget_;
  QSpinBox *limit_, *jobs_;
  QComboBox* devices_;  ///< its data: --devices; not to be seen where there are fewer than two GPUs, or it goes elsewhere
  qint64 gpus_ = 0;     ///< of this machine, as the plan says
  QLabel *question_, *takes_;
  QPushButton *measure_, *start_;
};

}  // namespace saccade::ui

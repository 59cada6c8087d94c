#pragma once
#include <QObject>
#include <QString>
#include <QStringList>

class QTimer;

namespace saccade::ui {

/// Path of the command line program: beside this one, else on the PATH. Empty when there is none.
QString commandLineProgram();

/// One `saccade train`, `fork` or `resume`, started detached in a session of its own: nothing here keeps it alive or ends it.
/// Watched only until it is clear whether it began; then this object deletes itself.
class RunProcess : public QObject {
  Q_OBJECT
 public:
  /// What the program says on stderr goes to the file `log`.
  RunProcess(const QString& directory, const QStringList& arguments, const QString& log, QObject* parent);
  bool start(QString* reason);

 Q_SIGNALS:
  void began();  ///< the run stands on the disk; not told of one that is resumed
  void failed(const QString& message);
  void ended();  ///< its process has gone, whatever came of it

 private:
  void check();

  QString directory_;
  QStringList arguments_;
  QString log_;
  QTimer* timer_;
  qint64 process_ = 0;
  bool began_ = false;
};

}  // namespace saccade::ui

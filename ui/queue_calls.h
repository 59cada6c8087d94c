#pragma once
#include <QObject>
#include <QString>
#include <QStringList>
#include <functional>

namespace saccade::ui {

class Session;

/// A queue: of a device of this machine, or of a host that is set up.
struct QueueOf {
  QString device;
  QString host = {};  ///< empty: this machine
};

/// What is done to queues from several pages, by the command line program; what fails is told. A host is asked over the connection that the
/// window keeps.
class QueueCalls : public QObject {
  Q_OBJECT
 public:
  explicit QueueCalls(Session& session, QObject* parent);

  /// An entry, by its number; the message that tells it offers to put it back.
  void takeOut(const QueueOf& queue, qint64 entry, const QString& name);
  void move(const QueueOf& queue, qint64 entry, int place);  ///< from 1
  void pause(const QueueOf& queue, bool now);                ///< `now`: runs at work stop, too
  void goOn(const QueueOf& queue);                           ///< a process works it off from now on

 Q_SIGNALS:
  void done();  ///< queues are not as they were, or it failed

 private:
  void call(const QueueOf& queue, const QStringList& arguments, const std::function<void()>& then = {});

  Session& session_;
};

}  // namespace saccade::ui

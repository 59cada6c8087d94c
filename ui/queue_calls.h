#pragma once
#include <QObject>
#include <QString>
#include <QThreadPool>
#include <functional>

namespace saccade::ui {

class Session;

/// What is done to the queues of this machine from several pages; files are written beside the event loop, and what fails is told.
class QueueCalls : public QObject {
  Q_OBJECT
 public:
  explicit QueueCalls(Session& session, QObject* parent);
  ~QueueCalls() override;

  /// An entry, by its number; the message that tells it offers to put it back.
  void takeOut(const QString& device, qint64 entry, const QString& name);
  void move(const QString& device, qint64 entry, int place);  ///< from 1
  void goOn(const QString& device);                           ///< a process works it off from now on

 Q_SIGNALS:
  void done();  ///< queues are not as they were, or it failed

 private:
  /// `change` in a thread, `then` here where it threw nothing.
  void work(std::function<void()> change, std::function<void()> then);
  void call(const QStringList& arguments);

  Session& session_;
  QThreadPool pool_;
};

}  // namespace saccade::ui

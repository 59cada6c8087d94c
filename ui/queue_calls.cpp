#include "ui/queue_calls.h"

#include "ui/program_call.h"
#include "ui/session.h"

namespace saccade::ui {

QueueCalls::QueueCalls(Session& session, QObject* parent) : QObject(parent), session_(session) {}

void QueueCalls::takeOut(const QueueOf& queue, qint64 entry, const QString& name) {
  const QString id = QString::number(entry);
  const auto back = [this, queue, id] { call(queue, {QStringLiteral("put-back"), id}); };
  call(queue, {QStringLiteral("remove"), id}, [this, queue, name, back] {
    const QString told =
        queue.host.isEmpty() ? tr("Taken out of the queue: %1").arg(name) : tr("Taken out of the queue of %1: %2").arg(queue.host, name);
    Q_EMIT session_.offered(told, {tr("Put back"), back});
  });
}

void QueueCalls::move(const QueueOf& queue, qint64 entry, int place) {
  call(queue, {QStringLiteral("move"), QString::number(entry), QString::number(place)});
}

void QueueCalls::pause(const QueueOf& queue, bool now) {
  call(queue, now ? QStringList{QStringLiteral("pause"), QStringLiteral("--now")} : QStringList{QStringLiteral("pause")});
}

void QueueCalls::goOn(const QueueOf& queue) { call(queue, {QStringLiteral("go-on")}); }

void QueueCalls::call(const QueueOf& queue, const QStringList& arguments, const std::function<void()>& then) {
  QStringList all = QStringList{QStringLiteral("queue")} + arguments + QStringList{QStringLiteral("--device"), queue.device};
  if (!queue.host.isEmpty()) all << QStringLiteral("--on") << queue.host;
  new ProgramCall(
      all, true,
      [this, then](const ProgramCall::Answer& answer) {
        if (!answer.ok) Q_EMIT session_.failed(answer.reason);
        if (answer.ok && then) then();
        Q_EMIT done();
      },
      this);
}

}  // namespace saccade::ui

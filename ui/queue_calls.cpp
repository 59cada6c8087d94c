#include "ui/queue_calls.h"

#include <memory>

#include "analysis/studies/queue.h"
#include "ui/program_call.h"
#include "ui/run_process.h"
#include "ui/session.h"

namespace saccade::ui {

QueueCalls::QueueCalls(Session& session, QObject* parent) : QObject(parent), session_(session) { pool_.setMaxThreadCount(1); }

QueueCalls::~QueueCalls() { pool_.waitForDone(); }

void QueueCalls::work(std::function<void()> change, std::function<void()> then) {
  pool_.start([this, change = std::move(change), then = std::move(then)] {
    QString problem;
    try {
      change();
    } catch (const std::exception& error) {
      problem = QString::fromUtf8(error.what());
    }
    QMetaObject::invokeMethod(
        this,
        [this, problem, then] {
          problem.isEmpty() ? then() : Q_EMIT session_.failed(problem);
          Q_EMIT done();
        },
        Qt::QueuedConnection);
  });
}

void QueueCalls::takeOut(const QString& device, qint64 entry, const QString& name) {
  const std::string of = device.toStdString();
  const auto taken = std::make_shared<TakenEntry>();
  const auto back = [this, of, taken] {
    work(
        [of, taken] {
          const DeviceQueue queue(of);
          put_back(queue, *taken);
          queue.ensure_worker(commandLineProgram().toStdString());
        },
        [] {});
  };
  work([of, taken, entry] { *taken = take_out(DeviceQueue(of), std::to_string(entry)); },
       [this, name, back] {
         Q_EMIT session_.offered(tr("Taken out of the queue: %1").arg(name), {tr("Put back"), back});
       });
}

void QueueCalls::move(const QString& device, qint64 entry, int place) {
  call({QStringLiteral("queue"), QStringLiteral("move"), QString::number(entry), QString::number(place), QStringLiteral("--device"),
        device});
}

void QueueCalls::goOn(const QString& device) {
  call({QStringLiteral("queue"), QStringLiteral("go-on"), QStringLiteral("--device"), device});
}

void QueueCalls::call(const QStringList& arguments) {
  new ProgramCall(
      arguments, true,
      [this](const ProgramCall::Answer& answer) {
        if (!answer.ok) Q_EMIT session_.failed(answer.reason);
        Q_EMIT done();
      },
      this);
}

}  // namespace saccade::ui

#include "ui/inspect/inspection_client.h"

#include <QCoreApplication>
#include <QPointer>
#include <QProcess>
#include <QThreadPool>

#include "ui/run_process.h"
#include "ui/threads/hand_over.h"

namespace saccade::ui {
namespace {

constexpr qsizetype kLongestAnswer = qsizetype{256} << 20;

QString last_words(QProcess& process) {
  const QStringList lines = QString::fromUtf8(process.readAllStandardError().right(4096)).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  return lines.isEmpty() ? QString() : lines.last().trimmed();
}

}  // namespace

InspectionClient::InspectionClient(QObject* parent) : QObject(parent) {
  patience_.setSingleShot(true);
  connect(&patience_, &QTimer::timeout, this, [this] {
    fail(tr("The inspection process took longer than %1 s and was ended. Try a shorter text.").arg(patience_ms_ / 1000.0));
  });
}

InspectionClient::~InspectionClient() { stop(); }

qint64 InspectionClient::process() const { return process_ ? process_->processId() : 0; }

void InspectionClient::open(const QString& run, qint64 checkpoint) {
  if (run == run_ && checkpoint == checkpoint_) return;
  stop();
  run_ = run;
  checkpoint_ = checkpoint;
}

void InspectionClient::ask(const std::string& method, nlohmann::json parameters, Digest digest) {
  using Json = nlohmann::json;
  const Json request{{"id", ++id_}, {"method", method}, {"parameters", std::move(parameters)}};
  waiting_.push_back({request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", std::move(digest)});
  if (waiting_.size() > 1) return;
  Q_EMIT busyChanged(true);
  if (!process_) start();
  send();
}

void InspectionClient::forget() {
  if (waiting_.empty()) return;
  waiting_.erase(waiting_.begin() + 1, waiting_.end());
  waiting_.front().forgotten = true;
}

void InspectionClient::start() {
  ++processes_;
  process_ = new QProcess(this);
  connect(process_, &QProcess::readyReadStandardOutput, this, &InspectionClient::read);
  connect(process_, &QProcess::finished, this, [this] {
    const QString words = last_words(*process_);
    fail(words.isEmpty() ? tr("The inspection process ended. The next request starts another.")
                         : tr("The inspection process ended: %1. The next request starts another.").arg(words));
  });
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) fail(tr("The program “saccade” cannot be started: %1").arg(process_->errorString()));
  });
  process_->start(commandLineProgram(), {QStringLiteral("-q"), QStringLiteral("inspect"), run_, QStringLiteral("--serve"),
                                         QStringLiteral("--checkpoint"), QString::number(checkpoint_)});
}

void InspectionClient::send() {
  if (!process_ || waiting_.empty()) return;
  process_->write(waiting_.front().line.data(), static_cast<qint64>(waiting_.front().line.size()));
  patience_.start(patience_ms_);
}

void InspectionClient::read() {
  buffer_ += process_->readAllStandardOutput();
  const qsizetype end = buffer_.indexOf('\n', searched_);
  searched_ = buffer_.size();
  if (end < 0) {
    if (buffer_.size() > kLongestAnswer) fail(tr("The inspection process gave no line but %1 bytes and was ended.").arg(buffer_.size()));
    return;
  }
  const QByteArray line = buffer_.left(end);
  buffer_.clear();  // a line is answered by a line
  searched_ = 0;
  patience_.stop();
  if (!waiting_.empty()) take(line);
}

/// Answers are large where they hold maps: read in a thread.
void InspectionClient::take(const QByteArray& line) {
  const QPointer<InspectionClient> self(this);
  const QPointer<QProcess> asked(process_);
  start_in(*QThreadPool::globalInstance(), [self, asked, line, digest = waiting_.front().digest] {
    std::function<void()> then;
    QString problem;
    try {
      nlohmann::json reply = nlohmann::json::parse(line.constBegin(), line.constEnd());
      if (reply.contains("error"))
        problem = QString::fromStdString(reply["error"].at("message").get<std::string>());
      else
        then = digest(std::move(reply.at("result")));
    } catch (const std::exception& error) {
      problem = tr("The inspection process answered something that cannot be read: %1").arg(QString::fromUtf8(error.what()));
    }
    hand_over(qApp, [self, asked, then, problem] {
      if (self && asked && self->process_ == asked) self->deliver(then, problem);
    });
  });
}

void InspectionClient::deliver(const std::function<void()>& then, const QString& problem) {
  if (waiting_.empty()) return;
  const bool forgotten = waiting_.front().forgotten;
  waiting_.pop_front();
  send();
  if (!forgotten && then) then();
  if (!forgotten && !problem.isEmpty()) Q_EMIT refused(problem);
  if (waiting_.empty()) Q_EMIT busyChanged(false);
}

void InspectionClient::fail(const QString& message) {
  stop();
  Q_EMIT ended(message);
}

void InspectionClient::stop() {
  const bool was_busy = busy();
  patience_.stop();
  waiting_.clear();
  buffer_.clear();
  searched_ = 0;
  if (process_) {
    process_->disconnect(this);
    process_->kill();
    connect(process_, &QProcess::finished, process_, &QObject::deleteLater);
    if (process_->state() == QProcess::NotRunning) process_->deleteLater();
    process_->waitForFinished(200);  // killed: it is gone at once
    process_ = nullptr;
  }
  if (was_busy) Q_EMIT busyChanged(false);
}

}  // namespace saccade::ui

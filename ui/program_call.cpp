#include "ui/program_call.h"

#include <QProcess>

#include "ui/run_process.h"

namespace saccade::ui {
namespace {

QString last_line(const QByteArray& text) {
  const QStringList lines = QString::fromUtf8(text).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  return lines.isEmpty() ? ProgramCall::tr("The program “saccade” ended without a word.") : lines.last().trimmed();
}

}  // namespace

ProgramCall::ProgramCall(const QStringList& arguments, bool brief, std::function<void(const Answer&)> then, QObject* owner)
    : QObject(owner), process_(new QProcess(this)), then_(std::move(then)), brief_(brief) {
  connect(process_, &QProcess::finished, this, [this](int code) {
    const bool ok = process_->exitStatus() == QProcess::NormalExit && code == 0;
    const QByteArray errors = process_->readAllStandardError();
    finish({ok, process_->readAllStandardOutput(), ok ? QString() : last_line(errors)});
  });
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart)
      finish({false, {}, tr("The program “saccade” cannot be started: %1").arg(process_->errorString())});
  });
  process_->setStandardInputFile(QProcess::nullDevice());
  process_->start(commandLineProgram(), QStringList{QStringLiteral("-q"), QStringLiteral("--json")} + arguments);
}

ProgramCall::~ProgramCall() {
  process_->disconnect(this);
  if (process_->state() == QProcess::NotRunning) return;
  constexpr int kPatience = 3000;
  if (brief_ && process_->waitForFinished(kPatience)) return;
  if (brief_) {  // on a busy machine what was asked for is done all the same, without the window
    process_->setParent(nullptr);
    connect(process_, &QProcess::finished, process_, &QObject::deleteLater);
    return;
  }
  process_->kill();
  process_->waitForFinished(1000);
}

void ProgramCall::cancel() {
  then_ = {};
  brief_ = false;
  process_->disconnect(this);
  connect(process_, &QProcess::finished, this, &QObject::deleteLater);
  process_->state() == QProcess::NotRunning ? deleteLater() : process_->kill();
}

void ProgramCall::finish(const Answer& answer) {
  process_->disconnect(this);
  deleteLater();
  if (then_) std::exchange(then_, {})(answer);
}

}  // namespace saccade::ui

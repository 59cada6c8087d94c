#include "ui/run_process.h"

#include <signal.h>

#include <QCoreApplication>
#include <QDateTime>
#include <QFile>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>
#include <QTimer>

namespace saccade::ui {
namespace {

/// The line that says why: the last one in which the program speaks of an error ("saccade: …"); others tell how far it was.
QString last_line(const QString& log) {
  QFile file(log);
  if (!file.open(QIODevice::ReadOnly)) return {};
  file.seek(qMax<qint64>(0, file.size() - 4096));
  const QStringList lines = QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->startsWith(QStringLiteral("saccade: "))) return line->trimmed();
  return {};
}

bool is_alive(qint64 process) { return kill(static_cast<pid_t>(process), 0) == 0; }

}  // namespace

QString commandLineProgram() {
  const QString given = qEnvironmentVariable("SACCADE_BINARY");
  if (!given.isEmpty() && QFileInfo(given).isExecutable()) return given;
  const QString beside = QCoreApplication::applicationDirPath() + QStringLiteral("/saccade");
  return QFileInfo(beside).isExecutable() ? beside : QStandardPaths::findExecutable(QStringLiteral("saccade"));
}

RunProcess::RunProcess(const QString& directory, const QStringList& arguments, const QString& log, QObject* parent)
    : QObject(parent), directory_(directory), arguments_(arguments), log_(log), timer_(new QTimer(this)) {
  connect(timer_, &QTimer::timeout, this, &RunProcess::check);
}

bool RunProcess::start(QString* reason) {
  QProcess process;
  process.setProgram(commandLineProgram());
  if (process.program().isEmpty()) {
    *reason = tr("The program “saccade” is neither beside this one nor on the PATH.");
    return false;
  }
  process.setArguments(arguments_);
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(QProcess::nullDevice());
  process.setStandardErrorFile(log_);
  if (!process.startDetached(&process_)) {
    *reason = tr("%1 could not be started: %2").arg(process.program(), process.errorString());
    return false;
  }
  timer_->start(250);
  return true;
}

/// Until the process has gone: its own record in the directory tells the rest, unless it never got that far.
void RunProcess::check() {
  const bool alive = is_alive(process_), resumed = arguments_.value(0) == QStringLiteral("resume");
  if (!began_ && !resumed && QFileInfo::exists(directory_ + QStringLiteral("/run.json"))) {
    began_ = true;
    Q_EMIT began();
  }
  if (alive) return;
  timer_->stop();
  QString why = last_line(log_);
  if (why.isEmpty() && !resumed) why = tr("The run ended before it began, without a word; %1 is empty or tells of no error.").arg(log_);
  if (!began_ && !why.isEmpty()) Q_EMIT failed(why);
  Q_EMIT ended();
  deleteLater();
}

}  // namespace saccade::ui

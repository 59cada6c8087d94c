#include "ui/mirror_keeper.h"

#include <QFile>
#include <QProcess>

#include "analysis/remote/host_profile.h"
#include "ui/run_process.h"

namespace saccade::ui {
namespace {

constexpr int kBetweenLooks = 2000;  // ms; a small folder is listed

QByteArray profile_of(const std::string& host) {
  QFile file(QString::fromStdString(host_file(host).string()));
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

MirrorKeeper::MirrorKeeper(QObject* parent) : QObject(parent) {
  connect(&timer_, &QTimer::timeout, this, &MirrorKeeper::look);
  timer_.start(kBetweenLooks);
  look();
}

MirrorKeeper::~MirrorKeeper() {
  for (const Kept& kept : std::as_const(kept_)) end(kept.process);
}

void MirrorKeeper::look() {
  QStringList names;
  for (const std::string& name : host_names()) {
    const QString host = QString::fromStdString(name);
    const QByteArray profile = profile_of(name);
    names << host;
    const auto kept = kept_.constFind(host);
    if (kept != kept_.constEnd() && kept->profile == profile && kept->process->state() != QProcess::NotRunning) continue;
    if (kept != kept_.constEnd()) end(kept->process);
    begin(host, profile);
  }
  for (const QString& host : kept_.keys())
    if (!names.contains(host)) end(kept_.take(host).process);
}

/// It ends with its standard input, so that a window that is killed leaves nothing behind.
void MirrorKeeper::begin(const QString& host, const QByteArray& profile) {
  auto* process = new QProcess(this);
  process->setStandardOutputFile(QProcess::nullDevice());
  process->setStandardErrorFile(QProcess::nullDevice());
  process->start(commandLineProgram(), {QStringLiteral("-q"), QStringLiteral("host"), QStringLiteral("sync"), host,
                                        QStringLiteral("--watch"), QStringLiteral("--until-eof")});
  kept_[host] = {process, profile};
}

void MirrorKeeper::end(QProcess* process) {
  process->disconnect(this);
  process->terminate();
  if (!process->waitForFinished(300)) {
    process->kill();
    process->waitForFinished(1000);
  }
  delete process;
}

}  // namespace saccade::ui

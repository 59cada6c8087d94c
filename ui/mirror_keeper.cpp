#include "ui/mirror_keeper.h"

#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <algorithm>
#include <utility>

#include "analysis/remote/host_profile.h"
#include "ui/run_process.h"

namespace saccade::ui {
namespace {

constexpr int kBetweenLooks = 2000;  // ms; a small folder is listed
constexpr int kPatience = 300;       // ms that a program may take to end by itself

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
  for (const Kept& kept : std::as_const(kept_)) {
    kept.process->disconnect(this);
    kept.process->terminate();
  }
  QElapsedTimer since;
  since.start();
  for (const Kept& kept : std::as_const(kept_)) {  // all together have the time of one
    if (!kept.process->waitForFinished(static_cast<int>(std::max<qint64>(1, kPatience - since.elapsed())))) {
      kept.process->kill();
      kept.process->waitForFinished(1000);
    }
    delete kept.process;
  }
}

void MirrorKeeper::look() {
  QStringList names;
  for (const std::string& name : host_names()) {
    const QString host = QString::fromStdString(name);
    const QByteArray profile = profile_of(name);
    names << host;
    const auto kept = kept_.find(host);
    if (kept == kept_.end())
      begin(host, profile);
    else if (kept->process->state() == QProcess::NotRunning)
      forget(host), begin(host, profile);
    else if (kept->profile != profile)
      end(*kept);  // the next look begins another: two of them may not keep one mirror
  }
  endOthers(names);
}

void MirrorKeeper::endOthers(const QStringList& names) {
  for (const QString& host : kept_.keys()) {
    if (names.contains(host)) continue;
    if (kept_[host].process->state() == QProcess::NotRunning)
      forget(host);
    else
      end(kept_[host]);
  }
}

void MirrorKeeper::forget(const QString& host) { kept_.take(host).process->deleteLater(); }

/// It ends with its standard input, so that a window that is killed leaves nothing behind.
void MirrorKeeper::begin(const QString& host, const QByteArray& profile) {
  auto* process = new QProcess(this);
  process->setStandardOutputFile(QProcess::nullDevice());
  process->setStandardErrorFile(QProcess::nullDevice());
  process->start(commandLineProgram(), {QStringLiteral("-q"), QStringLiteral("host"), QStringLiteral("sync"), host,
                                        QStringLiteral("--watch"), QStringLiteral("--until-eof")});
  kept_[host] = {process, profile};
}

/// One that still logs in to a host that does not answer ends late, and the window does not wait for it.
void MirrorKeeper::end(Kept& kept) {
  if (std::exchange(kept.ending, true)) return;
  connect(kept.process, &QProcess::finished, this, &MirrorKeeper::look);
  kept.process->terminate();
  QTimer::singleShot(kPatience, kept.process, &QProcess::kill);
}

}  // namespace saccade::ui

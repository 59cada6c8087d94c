#pragma once
#include "analysis/remote/host_profile.h"
#include "tests/app/program.h"

namespace saccade::test {

/// A host "alias" for ssh, in whose place stands a script that starts the agent on this machine, in folders of its own below `there`. It
/// writes a line to `logins` each time.
class StandInHost {
 public:
  /// `own_data`: corpora and queues of its own, too; the corpora are copied.
  explicit StandInHost(const Program& program, bool own_data = false) : program_(program) {
    qputenv("SACCADE_CONFIG", program.path("config").toUtf8());
    qputenv("XDG_RUNTIME_DIR", program.path("runtime").toUtf8());
    QDir().mkpath(there("runs"));
    if (own_data) program.copy("data", "there/data");
    const QByteArray data = own_data ? " SACCADE_DATA='" + there("data").toUtf8() + "'" : QByteArray();
    program.write("ssh",
                  "#!/bin/sh\n# ssh -T ALIAS COMMAND\n[ \"$2\" = alias ] || { echo \"no such machine: $2\" >&2; exit 255; }\n"
                  "echo in >>'" +
                      program.path("logins").toUtf8() + "'\nexport SACCADE_RUNS='" + there("runs").toUtf8() + "' HOME='" +
                      there("").toUtf8() + "'" + data + " PATH='" + QFileInfo(qEnvironmentVariable("SACCADE_BINARY")).path().toUtf8() +
                      ":/usr/bin:/bin'\nexec sh -c \"$3\"\n");
    QFile::setPermissions(program.path("ssh"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    qputenv("SACCADE_SSH", program.path("ssh").toUtf8());
  }
  QString there(const QString& name) const { return program_.path(QStringLiteral("there/") + name); }
  int logins() const {
    QFile file(program_.path("logins"));
    return file.open(QIODevice::ReadOnly) ? static_cast<int>(file.readAll().count('\n')) : 0;
  }

 private:
  const Program& program_;
};

}  // namespace saccade::test

#pragma once
#include <QtTest>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "models/json.h"
#include "tests/support/instrumented.h"
#include "tests/support/tiny_run.h"

namespace saccade::test {

/// The real program with folders of its own and a small corpus "mine" of two domains, prose and code.
class Program {
 public:
  struct Result {
    int code;  ///< −1: it crashed or did not end
    QString out, err;
    nlohmann::json json() const { return nlohmann::json::parse(out.toStdString(), nullptr, false); }
  };
  using Limit = std::function<void()>;  ///< runs in the child before the program, for resource limits

  QString path(const QString& name) const { return folder_.path() + "/" + name; }

  void write(const QString& name, const QByteArray& content) const {
    QFile file(path(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) qFatal("cannot write %s", qPrintable(name));
  }

  std::unique_ptr<QProcess> start(const QStringList& arguments, const Limit& limit = {}) const {
    auto process = std::make_unique<QProcess>();
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SACCADE_DATA", path("data"));
    environment.insert("SACCADE_CACHE", path("cache"));
    environment.insert("SACCADE_RUNS", path("runs"));
    environment.insert("PATH", "/usr/bin:/bin");
    process->setProcessEnvironment(environment);
    process->setWorkingDirectory(folder_.path());
    if (limit) process->setChildProcessModifier(limit);
    process->start(qEnvironmentVariable("SACCADE_BINARY"), arguments);
    process->waitForStarted();
    return process;
  }

  static Result finish(QProcess& process) {
    const bool ended = process.waitForFinished(120000 * kSlower) && process.exitStatus() == QProcess::NormalExit;
    return {ended ? process.exitCode() : -1, QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
  }

  Result run(const QStringList& arguments, const Limit& limit = {}) const { return finish(*start(arguments, limit)); }

  /// What this process opens lies in the program's folders, a corpus among it.
  void share_folders() const {
    for (const char* name : {"data", "cache", "runs"}) qputenv(("SACCADE_" + QByteArray(name).toUpper()).constData(), path(name).toUtf8());
    QDir().mkpath(path("runs"));
    import_corpus();
  }

  void import_corpus() const {
    QByteArray lines;
    for (int i = 0; i < 60; ++i) {
      const QByteArray n = QByteArray::number(i);
      const QByteArray prose = "Rain fell on the hills for " + n + " days, and the old road to the sea was washed away again. ";
      const QByteArray code = "for (int i = 0; i < " + n + "; ++i) sum += values[i]; return sum * " + n + "; ";
      lines += R"({"text": ")" + prose.repeated(4) + R"(", "meta": {"redpajama_set_name": "prose"}})" + "\n";
      lines += R"({"text": ")" + code.repeated(4) + R"(", "meta": {"redpajama_set_name": "code"}})" + "\n";
    }
    write("text.jsonl", lines);
    const Result result = run({"-q", "corpus", "import", "mine", path("text.jsonl"), "--validation-share", "0.3"});
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
  }

  static nlohmann::json config() {
    nlohmann::json config = tiny_run("mine");
    config["threads"] = 1;
    return config;
  }

  /// Trains `config` with overrides into `directory`; what is not finished is a mistake of the test.
  void train(const QString& directory, const QStringList& overrides = {}) const {
    write("config.json", QByteArray::fromStdString(config().dump()));
    QStringList arguments{"-q", "train", path("config.json"), "--out", path(directory)};
    for (const QString& o : overrides) arguments << "--set" << o;
    const Result result = run(arguments);
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
  }

  /// Waits until a run has recorded `records` journal lines.
  bool wait_for_records(const QString& directory, int records) const {
    return QTest::qWaitFor(
        [&] {
          QFile journal(path(directory) + "/journal.jsonl");
          return journal.open(QIODevice::ReadOnly) && journal.readAll().count('\n') >= records;
        },
        60000 * kSlower);
  }

  void copy(const QString& from, const QString& to) const {
    std::filesystem::create_directories(std::filesystem::path(path(to).toStdString()).parent_path());
    std::filesystem::remove_all(path(to).toStdString());
    std::filesystem::copy(path(from).toStdString(), path(to).toStdString(), std::filesystem::copy_options::recursive);
  }

  /// Turns over one bit in every byte of a file's middle half; HDF5 files have bytes between that mean nothing.
  void damage(const QString& name) const {
    QFile file(path(name));
    if (!file.open(QIODevice::ReadWrite)) qFatal("cannot open %s", qPrintable(name));
    QByteArray content = file.readAll();
    for (qsizetype i = content.size() / 4; i < content.size() * 3 / 4; ++i) content[i] = static_cast<char>(content[i] ^ 0x10);
    file.seek(0);
    file.write(content);
  }

  /// SHA-256 over names and contents of everything below a folder but the lock and the log, which every process that takes up a
  /// run writes.
  QByteArray contents(const QString& directory) const {
    std::map<std::string, std::filesystem::path> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(directory).toStdString(), none))
      if (entry.path().filename() != "lock" && entry.path().filename() != "log.txt") files[entry.path().string()] = entry.path();
    QCryptographicHash hash(QCryptographicHash::Sha256);
    for (const auto& [name, file] : files) {
      hash.addData(QByteArray::fromStdString(name));
      QFile content(QString::fromStdString(file.string()));
      if (content.open(QIODevice::ReadOnly)) hash.addData(content.readAll());
    }
    return hash.result();
  }

 private:
  QTemporaryDir folder_;
};

/// One line that starts with "saccade: ", and nothing on standard output.
inline bool is_one_error(const Program::Result& result) {
  return result.out.isEmpty() && result.err.startsWith("saccade: ") && result.err.count('\n') == 1 && result.err.endsWith('\n');
}

}  // namespace saccade::test

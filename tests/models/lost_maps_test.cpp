#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>

#include "models/corpus/disk.h"

namespace saccade::test {

/// A mapped file that is cut while it is read ends the program with a line; in a process of its own here.
class LostMapsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void aFileThatBecomesShorter() {
    std::ofstream(path(), std::ios::binary) << std::string(kSize, 'x');
    const auto [status, said] = in_a_child([&] {
      const MappedFile first(path());
      { const MappedFile gone(path()); }
      std::filesystem::resize_file(path(), 100);
      return first.bytes()[kSize - 1] == 'x' ? 10 : 11;
    });
    QVERIFY2(WIFEXITED(status) && WEXITSTATUS(status) == 3, qPrintable(QString::number(status)));
    QCOMPARE(said, "saccade: " + QString::fromStdString(path()).replace('\n', '?') +
                       " cannot be read any more: it became shorter, or its disk is gone\n");
  }
  /// Another SIGBUS is none of a file's.
  void whatIsInNoMap() {
    std::ofstream(path(), std::ios::binary) << std::string(kSize, 'x');
    const auto [status, said] = in_a_child([&] {
      const MappedFile file(path());
      ::raise(SIGBUS);
      return 10;
    });
    QVERIFY(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    QCOMPARE(said, QString());
  }

 private:
  static constexpr size_t kSize = 1 << 16;
  std::string path() const { return folder_.filePath("to\nkens").toStdString(); }

  template <class Work>
  static std::pair<int, QString> in_a_child(Work work) {
    int ends[2];
    if (::pipe(ends) != 0) return {-1, {}};
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::_exit(work());
    }
    ::close(ends[1]);
    QByteArray said;
    char block[4096];
    for (ssize_t got; (got = ::read(ends[0], block, sizeof block)) > 0;) said.append(block, static_cast<qsizetype>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return {status, QString::fromUtf8(said)};
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LostMapsTest)
#include "lost_maps_test.moc"

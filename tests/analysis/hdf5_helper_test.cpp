#include <signal.h>
#include <sys/wait.h>

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "analysis/runs/hdf5.h"
#include "analysis/runs/hdf5_helper.h"
#include "kernels/engine/error.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Another process reads files for this one: it says the same, has limits, and may end in whatever way.
class Hdf5HelperTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    h5::Writer file(path("file.h5"));
    const h5::Group &root = file.root(), inner = root.create("inner/group");
    root.set_attribute("text", std::string("tëxt\nof two lines"));
    root.set_attribute("real", 0.1);
    root.set_attribute("integer", int64_t{-1} << 62);
    inner.write("f4", floats_);
    inner.write("f8", std::vector<double>{0.1, std::nan(""), -INFINITY});
    inner.write<int32_t>("i4", std::vector<int32_t>{-1, 2, 3, 4, 5, 6}, {2, 3});
    inner.write("i8", std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
    inner.write("u8", std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()});
    inner.write("u1", std::vector<uint8_t>{});
    inner.write_texts("texts", {"one", "", "line\nbreak", std::string("\xff\xfe bytes")});
    inner.set_attribute("units", std::string("nats"), "f4");
    file.close();
  }

  void saysTheSame() {
    const h5::Reader foreign(path("file.h5")), own(path("file.h5"), h5::Origin::this_process);
    QCOMPARE(children().size(), size_t{1});
    for (const h5::Group* root : {&foreign.root(), &own.root()}) {
      QCOMPARE(root->text_attribute("text"), std::string("tëxt\nof two lines"));
      QCOMPARE(root->real_attribute("real"), 0.1);
      QCOMPARE(root->integer_attribute("integer"), int64_t{-1} << 62);
      QCOMPARE(root->names(), std::vector<std::string>{"inner"});
      QVERIFY(root->is_group("inner") && root->contains("inner") && !root->contains("outer"));
      const h5::Group inner = root->open("inner").open("group"), at_once = root->open("inner/group");
      QCOMPARE(inner.names().size(), size_t{7});
      QVERIFY(!inner.is_group("f4") && inner.is_double("f8") && !inner.is_double("f4"));
      QCOMPARE(inner.read<float>("f4"), floats_);
      const std::vector<double> doubles = at_once.read<double>("f8");
      QVERIFY(doubles.size() == 3 && doubles[0] == 0.1 && std::isnan(doubles[1]) && doubles[2] == -INFINITY);
      QCOMPARE(inner.read<int32_t>("i4"), (std::vector<int32_t>{-1, 2, 3, 4, 5, 6}));
      QCOMPARE(inner.dims("i4"), (h5::Dims{2, 3}));
      QCOMPARE(inner.read<int64_t>("i8").at(0), std::numeric_limits<int64_t>::min());
      QCOMPARE(inner.read<uint64_t>("u8").at(0), std::numeric_limits<uint64_t>::max());
      QVERIFY(inner.read<uint8_t>("u1").empty());
      QCOMPARE(inner.read_texts("texts"), (std::vector<std::string>{"one", "", "line\nbreak", "\xff\xfe bytes"}));
      QCOMPARE(inner.text_attribute("units", "f4"), std::string("nats"));
      QCOMPARE(inner.read<double>("f4").at(1), 1.5);  // converted
    }
  }

  void saysTheSameOfWhatIsWrong() {
    const h5::Reader foreign(path("file.h5")), own(path("file.h5"), h5::Origin::this_process);
    const auto both = [&](const auto& read) {
      const QString a = message_of<DataError>([&] { read(foreign.root()); }), b = message_of<DataError>([&] { read(own.root()); });
      return a == b && !a.isEmpty();
    };
    QVERIFY(both([](const h5::Group& g) { g.open("nothing"); }));
    QVERIFY(both([](const h5::Group& g) { g.open("inner/group").read<float>("texts"); }));
    QVERIFY(both([](const h5::Group& g) { g.open("inner/group").read_texts("f4"); }));
    QVERIFY(both([](const h5::Group& g) { g.text_attribute("real"); }));
    QVERIFY(both([](const h5::Group& g) { g.integer_attribute("none"); }));
    QCOMPARE(foreign.root().real_attribute("real"), 0.1);  // it goes on behind an error
    std::ofstream(path("junk.h5")) << "junk";
    QVERIFY(message_of<DataError>([&] { h5::Reader junk(path("junk.h5")); }).contains("not a readable HDF5 file"));
  }

  void hasLimits() {
    const h5::Reader file(path("file.h5"));
    std::ifstream limits("/proc/" + std::to_string(children().at(0)) + "/limits");
    std::map<QString, QString> most;
    for (std::string line; std::getline(limits, line);) {
      const QStringList words = QString::fromStdString(line).simplified().split(QLatin1Char(' '));
      if (words.size() > 3) most[words.mid(1, 2).join(QLatin1Char(' '))] = words[3];
    }
    QCOMPARE(most[QStringLiteral("cpu time")].toLongLong(), qint64{h5::Helper::kSeconds});
    QCOMPARE(most[QStringLiteral("file size")], QStringLiteral("0"));
    QVERIFY(most[QStringLiteral("data size")].toLongLong() >= qint64{h5::Helper::kMemory});
  }

  void mayEnd_data() {
    QTest::addColumn<int>("signal");
    QTest::addColumn<QString>("words");
    QTest::newRow("crash") << SIGABRT << "ended by signal 6";  // SIGSEGV a sanitizer would answer itself
    QTest::newRow("time") << SIGXCPU << "takes more time";
  }
  void mayEnd() {
    QFETCH(int, signal);
    QFETCH(QString, words);
    const h5::Reader file(path("file.h5"));
    QCOMPARE(::kill(children().at(0), signal), 0);
    const QString message = message_of<DataError>([&] {
      for (int i = 0; i < 1000; ++i) file.root().names();
    });
    QVERIFY2(message.contains(words) && message.contains("file.h5"), qPrintable(message));
    QVERIFY(!message_of<DataError>([&] { file.root().names(); }).isEmpty());
  }

  /// Which is no reason to go back to an earlier checkpoint.
  void isKilledByOthers() {
    const h5::Reader file(path("file.h5"));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(children().at(0), signal);  // to all of a terminal or a service
    QCOMPARE(file.root().names().size(), size_t{1});
    QCOMPARE(::kill(children().at(0), SIGKILL), 0);
    try {
      for (int i = 0; i < 1000; ++i) file.root().names();
      QFAIL("it goes on without a helper");
    } catch (const DataError& error) {
      QFAIL(error.what());
    } catch (const Error& error) {
      QVERIFY2(QString(error.what()).contains("was killed"), error.what());
    }
  }

  /// A job that is preempted: every process of it is told to end, a helper that is still being loaded too, while who started it writes its
  /// last checkpoint.
  void isToldToEndBeforeItBegins() {
    std::atomic<bool> done = false;
    std::atomic<int> told = 0;
    std::thread others([&, mine = ::getpid()] {
      std::set<pid_t> known;
      while (!done) {
        std::ifstream list("/proc/self/task/" + std::to_string(mine) + "/children");
        for (pid_t child; list >> child;)
          if (known.insert(child).second)
            for (const int signal : {SIGTERM, SIGINT, SIGUSR2}) told += ::kill(child, signal) == 0;
      }
    });
    QString message;
    try {
      for (int i = 0; i < 10 || (told < 30 && i < 500); ++i) QCOMPARE(h5::Reader(path("file.h5")).root().names().size(), size_t{1});
    } catch (const Error& error) {
      message = error.what();
    }
    done = true;
    others.join();
    QVERIFY2(message.isEmpty(), qPrintable(message));
    QVERIFY2(told >= 30, qPrintable(QString::number(told)));
  }

  /// A helper that cannot be loaded (a library that was replaced while the program ran) says nothing about the file.
  void cannotBeLoaded() {
    QTemporaryDir libraries;
    QFile broken(libraries.filePath("libc.so.6"));
    QVERIFY(broken.open(QIODevice::WriteOnly) && broken.write("none") == 4);
    broken.close();
    const QByteArray before = qgetenv("LD_LIBRARY_PATH");
    qputenv("LD_LIBRARY_PATH", libraries.path().toUtf8());
    QString told;
    try {
      const h5::Reader file(path("file.h5"));
    } catch (const DataError& error) {
      told = QString("as damage: ") + error.what();
    } catch (const Error& error) {
      told = error.what();
    }
    before.isNull() ? qunsetenv("LD_LIBRARY_PATH") : qputenv("LD_LIBRARY_PATH", before);
    QVERIFY2(told.contains("file.h5") && told.contains("before it began") && !told.contains("damage"), qPrintable(told));
  }

  void nobodyIsLeft() {
    QVERIFY(children().empty());
    QVERIFY(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD);
  }

 private:
  fs::path path(const char* name) const { return fs::path(folder_.path().toStdString()) / name; }

  static std::vector<pid_t> children() {
    std::vector<pid_t> found;
    std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    for (pid_t child; list >> child;) found.push_back(child);
    return found;
  }

  QTemporaryDir folder_;
  const std::vector<float> floats_{0.0F, 1.5F, -2.25F};
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Hdf5HelperTest)
#include "hdf5_helper_test.moc"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>
#include <thread>

#include "analysis/runs/run_lock.h"
#include "models/json.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Who may take a lease when, and what its holder finds out. `locked` is false everywhere but where it is said: there are no locks.
class LeaseTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    lock_ = Descriptor(::open((path().parent_path() / "lock").c_str(), O_RDWR | O_CREAT, 0600));
  }

  void oneAtATime() {
    {
      const Lease lease(path(), lock_, false, {});
      const auto found = find_lease(path());
      QVERIFY(found && found->holder && found->holder->process == ::getpid() && !found->copied && seems_alive(*found));
      QVERIFY(message_of([&] { Lease(path(), lock_, false, {}); }).contains("in use by process " + QString::number(::getpid())));
      QVERIFY_THROWS_EXCEPTION(RunInUse, Lease(path(), lock_, false, {.take_over = true}));  // it gave a sign of life just now
    }
    QVERIFY(!fs::exists(path()));
    const Lease again(path(), lock_, false, {});
  }

  /// Gone for sure is not enough without locks: 180 s have to pass, which one may wait for.
  void aProcessThatIsGone() {
    leave(gone());
    std::atomic<bool> stop{false};
    std::string told;
    const std::function<void(const std::string&)> tell = [&](const std::string& line) {
      told = line;
      stop = true;  // an impatient user
    };
    QVERIFY(message_of([&] { Lease(path(), lock_, false, {.stop = &stop, .tell = tell}); }).contains("stopped while waiting"));
    QVERIFY2(told.find("is gone") != std::string::npos, told.c_str());
    age(200);
    const Lease lease(path(), lock_, false, {});
  }
  void aLockTellsAtOnce() {
    leave(gone());
    const Lease lease(path(), lock_, true, {});
    QCOMPARE(find_lease(path())->holder->process, ::getpid());
  }
  /// The number of a process is another one's by now.
  void anotherProcessOfItsNumber() {
    LeaseHolder holder = this_process();
    holder.started -= 1;
    holder.token = "before";
    leave(holder);
    age(200);
    const Lease lease(path(), lock_, false, {});
  }
  void aLivingProcessMayBeSilent() {
    LeaseHolder holder = this_process();
    holder.token = "another";
    leave(holder);
    age(200);
    QVERIFY(
        message_of([&] { Lease(path(), lock_, false, {.advice = "ask"}); }).contains("no sign of life for 200 s; if it has ended, ask"));
  }

  void anotherMachine() {
    leave(elsewhere());
    QVERIFY(seems_alive(*find_lease(path())));
    for (const bool locked : {false, true})  // locks may hold on one machine alone
      QVERIFY(message_of([&] { Lease(path(), lock_, locked, {.take_over = true}); }).contains("in use by process 7 on node17"));
    age(200);
    QVERIFY(!seems_alive(*find_lease(path())));
    QVERIFY(message_of([&] { Lease(path(), lock_, true, {}); }).contains("no sign of life"));
    const Lease lease(path(), lock_, false, {.take_over = true});
  }
  /// Slurm puts a job back when its node is lost: the attempt before is no more.
  void anEarlierAttemptOfThisJob() {
    qputenv("SLURM_JOB_ID", "4711");
    qputenv("SLURM_RESTART_COUNT", "2");
    const auto at_end = qScopeGuard([] { qunsetenv("SLURM_JOB_ID"), qunsetenv("SLURM_RESTART_COUNT"); });
    LeaseHolder holder = elsewhere();
    holder.job = "4711";
    holder.restart = 2;
    leave(holder);
    age(200);
    QVERIFY_THROWS_EXCEPTION(RunInUse, Lease(path(), lock_, false, {}));  // this job once more
    holder.restart = 1;
    leave(holder);
    age(200);
    const Lease lease(path(), lock_, false, {});
  }

  void whatIsNoLease_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("no JSON") << QByteArray("process 5");
    QTest::newRow("another object") << QByteArray("{\"process\": \"5\"}");
    QTest::newRow("large") << QByteArray(1 << 20, '[');
  }
  void whatIsNoLease() {
    QFETCH(QByteArray, text);
    std::ofstream(path()) << text.toStdString();
    QVERIFY(!find_lease(path())->holder);
    QVERIFY(message_of([&] { Lease(path(), lock_, false, {}); }).contains("in use by another process"));
    age(200);
    const Lease lease(path(), lock_, false, {});
    QVERIFY(find_lease(path())->holder);
  }
  /// Nobody finds one without its holder: a process that is killed while it makes one would leave it, and nobody could tell whose it is.
  void itIsThereWhole() {
    std::atomic<bool> done{false};
    int whole = 0, empty = 0;
    std::thread reader([&] {
      while (!done)
        if (const auto found = find_lease(path())) ++(found->holder ? whole : empty);
    });
    for (int i = 0; i < 200; ++i) const Lease lease(path(), lock_, false, {});
    done = true;
    reader.join();
    QVERIFY(whole > 0);
    QCOMPARE(empty, 0);
    QCOMPARE(std::distance(fs::directory_iterator(path().parent_path()), {}), 1);  // the lock: no file aside is left
  }
  void whatIsNoFile() {
    fs::create_symlink("lock", path());
    QVERIFY(message_of([&] { Lease(path(), lock_, false, {}); }).contains("is a link"));
    fs::remove(path());
    fs::create_directory(path());
    QVERIFY(message_of([&] { Lease(path(), lock_, false, {}); }).contains("no regular file"));
  }

  void whoLosesItFindsOut() {
    Lease lease(path(), lock_, false, {});
    QVERIFY(lease.beat());
    fs::remove(path());
    leave(elsewhere());
    QVERIFY(!lease.beat());
    QVERIFY(message_of([&] { lease.require(); }).contains("was taken over by process 7 on node17"));
    QVERIFY(!lease.beat());
  }
  void theNewHolderKeepsIt() {
    {
      Lease lease(path(), lock_, false, {});
      fs::remove(path());
      leave(elsewhere());
    }
    QVERIFY(fs::exists(path()));
  }
  void aDeletedOneIsMadeAgain() {
    Lease lease(path(), lock_, false, {});
    fs::remove(path());
    QVERIFY(lease.beat());
    QCOMPARE(find_lease(path())->holder->process, ::getpid());
  }
  void beatsAreSignsOfLife() {
    Lease lease(path(), lock_, false, {});
    age(100);
    const double before = find_lease(path())->changed;
    QVERIFY(lease.beat());
    QVERIFY(find_lease(path())->changed > before + 90);
  }

  /// A reader of a copy knows nothing of the process.
  void aCopyTellsOnlyItsTime() {
    leave(gone());
    QVERIFY(!seems_alive(*find_lease(path())));
    const fs::path copy = path().parent_path() / "copy";
    fs::copy_file(path(), copy);
    QVERIFY(find_lease(copy)->copied && seems_alive(*find_lease(copy)));
  }

 private:
  fs::path path() const { return folder_->filePath("lease").toStdString(); }
  /// Lets a lease lie there as its holder would have left it.
  void leave(LeaseHolder holder) const {
    const Descriptor file(::open(path().c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    struct stat state {};
    ::fstat(file.get(), &state);
    holder.inode = state.st_ino;
    QVERIFY(write_all(file.get(), lease_text(holder)));
  }
  void age(int seconds) const {
    const auto when = fs::file_time_type::clock::now() - std::chrono::seconds(seconds);
    fs::last_write_time(path(), when);
  }
  static LeaseHolder gone() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    LeaseHolder holder = this_process();
    holder.process = child;
    holder.token = "gone";
    ::waitpid(child, nullptr, 0);
    return holder;
  }
  static LeaseHolder elsewhere() {
    LeaseHolder holder = this_process();
    holder.process = 7;
    holder.host = "node17";
    holder.boot = "another";
    holder.token = "elsewhere";
    return holder;
  }

  std::unique_ptr<QTemporaryDir> folder_;
  Descriptor lock_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LeaseTest)
#include "lease_test.moc"

#include "analysis/runs/file_thread.h"

#include <QtTest>
#include <atomic>
#include <chrono>

#include "kernels/engine/error.h"

namespace saccade::test {

class FileThreadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void work_is_done_in_order_beside_its_owner() {
    FileThread files;
    std::vector<int> done;
    std::atomic<bool> go = false;
    const auto owner = std::this_thread::get_id();
    files.add([&] {
      while (!go) std::this_thread::yield();
      done.push_back(std::this_thread::get_id() == owner ? -1 : 0);
    });
    for (int i = 1; i < 50; ++i) files.add([&, i] { done.push_back(i); });
    files.check();  // waits for nothing
    QVERIFY(files.busy());
    go = true;
    files.wait();
    QVERIFY(!files.busy());
    QCOMPARE(done.size(), size_t{50});
    for (int i = 0; i < 50; ++i) QCOMPARE(done[static_cast<size_t>(i)], i);
  }

  void all_is_done_before_it_ends() {
    std::atomic<int> done = 0;
    {
      FileThread files;
      for (int i = 0; i < 20; ++i)
        files.add([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          ++done;
        });
    }
    QCOMPARE(done.load(), 20);
  }

  /// Of what stands behind an error nothing is done; the owner hears of it once, and may go on.
  void an_error_reaches_the_owner() {
    FileThread files;
    std::atomic<int> done = 0;
    files.add([&] { throw DataError("the disk is full"); });
    QVERIFY_THROWS_EXCEPTION(DataError, files.wait());
    files.wait();
    files.add([&] { done = 7; });
    files.wait();
    QCOMPARE(done.load(), 7);
    std::atomic<bool> go = false;
    files.add([&] {
      while (!go) std::this_thread::yield();
      throw DataError("again");
    });
    files.add([&] { done = 8; });  // behind it for sure
    go = true;
    QVERIFY_THROWS_EXCEPTION(DataError, files.wait());
    QCOMPARE(done.load(), 7);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::FileThreadTest)
#include "file_thread_test.moc"

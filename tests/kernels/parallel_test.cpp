#include "kernels/engine/parallel.h"

#include <QtTest>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace saccade::test {

class ParallelTest : public QObject {
  Q_OBJECT
  int before_ = thread_count();

 private Q_SLOTS:
  void cleanup() { set_thread_count(before_); }

  void every_task_runs_once() {
    for (int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      QCOMPARE(thread_count(), threads);
      for (int64_t tasks : {0, 1, 2, 13, 1000}) {
        std::vector<std::atomic<int>> ran(static_cast<size_t>(tasks));
        parallel_for(tasks, [&](int64_t i) { ++ran[static_cast<size_t>(i)]; });
        for (const auto& count : ran) QCOMPARE(count.load(), 1);
      }
    }
  }

  void ranges_cover_without_overlap() {
    set_thread_count(3);
    for (int64_t size : {0, 1, 7, 8, 9, 1001})
      for (int64_t grain : {1, 8, 5000}) {
        std::vector<int> seen(static_cast<size_t>(size));
        parallel_ranges(size, grain, [&](int64_t begin, int64_t end) {
          if (begin >= end || end - begin > grain) throw std::logic_error("range");
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        QCOMPARE(std::accumulate(seen.begin(), seen.end(), int64_t{0}), size);
        QVERIFY(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
      }
  }

  void really_parallel() {
    set_thread_count(2);
    std::atomic<int> arrived{0};
    parallel_for(2, [&](int64_t) {
      ++arrived;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      if (arrived < 2) throw std::runtime_error("the other task never started");
    });
  }

  void exceptions_arrive_and_leave_the_pool_usable() {
    for (int threads : {1, 2, 4}) {
      set_thread_count(threads);
      for (int round = 0; round < 50; ++round) {
        try {
          parallel_for(100, [&](int64_t i) {
            if (i == 37) throw std::runtime_error("task 37");
          });
          QFAIL("no exception");
        } catch (const std::runtime_error& e) {
          QCOMPARE(QString(e.what()), "task 37");
        }
        std::atomic<int> count{0};
        parallel_for(10, [&](int64_t) { ++count; });
        QCOMPARE(count.load(), 10);
      }
    }
  }

  void nested_regions_run_serially() {
    set_thread_count(3);
    std::vector<int64_t> sums(20);
    parallel_for(20, [&](int64_t i) {
      const auto self = std::this_thread::get_id();
      parallel_for(10, [&](int64_t j) {
        if (std::this_thread::get_id() != self) throw std::logic_error("left the thread");
        sums[static_cast<size_t>(i)] += j;
      });
    });
    for (int64_t sum : sums) QCOMPARE(sum, 45);
  }

  void callers_on_several_threads() {
    set_thread_count(2);
    std::atomic<int> count{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c)
      callers.emplace_back([&] {
        for (int round = 0; round < 100; ++round) parallel_for(7, [&](int64_t) { ++count; });
      });
    for (std::thread& caller : callers) caller.join();
    QCOMPARE(count.load(), 4 * 100 * 7);
  }

  void many_short_regions_and_sleeping_workers() {
    set_thread_count(3);
    std::atomic<int64_t> count{0};
    for (int round = 0; round < 20000; ++round) parallel_for(3, [&](int64_t) { ++count; });
    for (int round = 0; round < 20; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      parallel_for(3, [&](int64_t) { ++count; });
    }
    QCOMPARE(count.load(), 3 * 20020);
  }

  void resizing_inside_a_task_is_refused() {
    set_thread_count(2);
    QVERIFY_THROWS_EXCEPTION(std::logic_error, parallel_for(4, [](int64_t) { set_thread_count(3); }));
    QCOMPARE(thread_count(), 2);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ParallelTest)
#include "parallel_test.moc"

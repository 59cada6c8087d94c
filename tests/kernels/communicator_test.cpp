#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "kernels/engine/arena.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/socket_communicator.h"

namespace saccade::test {

/// Ranks are threads of this process here, each with its ends of the sockets.
class CommunicatorTest : public QObject {
  Q_OBJECT

  Arena host_{Device::cpu()};
  std::mutex mutex_;

  Tensor numbers(const std::vector<float>& values) {
    const std::lock_guard lock(mutex_);
    const Tensor x = host_.allocate({static_cast<int64_t>(values.size())}, DType::f32);
    std::copy(values.begin(), values.end(), x.data<float>());
    return x;
  }
  static std::vector<float> values(const Tensor& x) { return {x.data<float>(), x.data<float>() + x.size()}; }

  /// Runs `work` as every rank; gives what each threw.
  static std::vector<std::string> as_ranks(std::vector<RankSockets> sockets, const std::function<void(Communicator&)>& work,
                                           const RankWatchOptions& options = {}) {
    std::vector<std::string> errors(sockets.size());
    std::vector<std::thread> threads;
    for (RankSockets& own : sockets)
      threads.emplace_back([&, own = std::move(own)]() mutable {
        const auto rank = static_cast<size_t>(own.rank);
        try {
          SocketCommunicator communicator(std::move(own), options);
          work(communicator);
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    return errors;
  }
  static std::vector<std::string> as_ranks(int count, const std::function<void(Communicator&)>& work,
                                           const RankWatchOptions& options = {}) {
    return as_ranks(connected_ranks(count), work, options);
  }
  /// A rank's sockets once more, so that they can be closed under it, as they are when a process is killed.
  static std::vector<int> ends_of(const RankSockets& rank) {
    std::vector<int> ends;
    for (const auto* list : {&rank.data, &rank.watch})
      for (const Socket& socket : *list)
        if (socket) ends.push_back(::dup(socket.get()));
    return ends;
  }
  static void end(const std::vector<int>& ends) {
    for (const int socket : ends) ::shutdown(socket, SHUT_RDWR), ::close(socket);
  }
  static std::vector<std::string> none(int count) { return std::vector<std::string>(static_cast<size_t>(count)); }

  using Call = std::function<void(Communicator&)>;
  std::vector<std::pair<const char*, Call>> calls() {
    return {{"all_to_all",
             [this](Communicator& c) {
               const Communicator::Parts send(static_cast<size_t>(c.size()), {numbers(std::vector<float>(1 << 18, 1.0F))});
               Communicator::Parts receive;
               for (int r = 0; r < c.size(); ++r) receive.push_back({numbers(std::vector<float>(1 << 18))});
               c.all_to_all(Device::cpu(), send, receive);
             }},
            {"all_gather",
             [this](Communicator& c) {
               Communicator::Parts parts;
               for (int r = 0; r < c.size(); ++r) parts.push_back({numbers({1, 2, 3})});
               c.all_gather(Device::cpu(), parts);
             }},
            {"broadcast", [](Communicator& c) { c.broadcast("a word"); }},
            {"any", [](Communicator& c) { c.any(false); }},
            {"barrier", [](Communicator& c) { c.barrier(); }}};
  }
  void rows_of_calls() {
    QTest::addColumn<int>("call");
    for (int i = 0; i < 5; ++i) QTest::newRow(calls()[static_cast<size_t>(i)].first) << i;
  }

 private Q_SLOTS:
  void all_to_all_brings_each_its_part() {
    for (const int count : {1, 2, 3, 5}) {
      std::atomic<int> right = 0;
      const auto errors = as_ranks(count, [&](Communicator& c) {
        Communicator::Parts send, receive;
        for (int r = 0; r < count; ++r) {  // of different lengths, and more than a socket holds
          const auto size = static_cast<size_t>(100000 * (r + 1));
          send.push_back(
              {numbers({static_cast<float>(c.rank())}), numbers(std::vector<float>(size, static_cast<float>(10 * c.rank() + r)))});
          receive.push_back({numbers({-1}), numbers(std::vector<float>(static_cast<size_t>(100000 * (c.rank() + 1)), -1))});
        }
        for (int again = 0; again < 3; ++again) c.all_to_all(Device::cpu(), send, receive);
        for (int r = 0; r < count; ++r) {
          const auto& got = receive[static_cast<size_t>(r)];
          const float first = r == c.rank() ? -1 : static_cast<float>(r),
                      second = r == c.rank() ? -1 : static_cast<float>(10 * r + c.rank());
          right += values(got[0]) == std::vector<float>{first} && values(got[1]) == std::vector<float>(values(got[1]).size(), second);
        }
      });
      QCOMPARE(errors, none(count));
      QCOMPARE(right.load(), count * count);
    }
  }

  void all_gather_gives_everyone_everything() {
    std::atomic<int> right = 0;
    const auto errors = as_ranks(3, [&](Communicator& c) {
      Communicator::Parts parts;
      for (int r = 0; r < 3; ++r)  // rank 1 has nothing
        parts.push_back(r == 1 ? std::vector<Tensor>() : std::vector{numbers({r == c.rank() ? static_cast<float>(r + 1) : 0, 7})});
      c.all_gather(Device::cpu(), parts);
      right += values(parts[0][0]) == std::vector<float>{1, 7} && values(parts[2][0]) == std::vector<float>{3, 7};
    });
    QCOMPARE(errors, none(3));
    QCOMPARE(right.load(), 3);
  }

  void broadcast_and_agreement() {
    std::atomic<int> right = 0;
    const auto errors = as_ranks(4, [&](Communicator& c) {
      const std::string text(70000, 'x');
      right += c.broadcast(c.rank() == 0 ? text : "nothing") == text && c.broadcast(c.rank() == 0 ? "" : "nothing").empty();
      right += !c.any(false) && c.any(c.rank() == 2) && c.any(true);
    });
    QCOMPARE(errors, none(4));
    QCOMPARE(right.load(), 8);
  }

  /// The rank, its process and host are named by those that live on.
  void a_rank_that_ends_in_a_call_is_named_data() { rows_of_calls(); }
  void a_rank_that_ends_in_a_call_is_named() {
    QFETCH(int, call);
    const Call again = calls()[static_cast<size_t>(call)].second;
    std::vector<RankSockets> sockets = connected_ranks(3);
    const pid_t child = ::fork();
    if (child == 0) {
      RankSockets mine = std::move(sockets[1]);
      sockets.clear();  // the others' ends
      try {
        SocketCommunicator communicator(std::move(mine));
        again(communicator);
        ::raise(SIGKILL);
      } catch (...) {
      }
      ::_exit(0);
    }
    const double start = now();
    sockets.erase(sockets.begin() + 1);
    std::vector<std::string> errors(2);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        try {
          SocketCommunicator communicator(std::move(sockets[i]));
          for (int n = 0; n < 100; ++n) again(communicator);
        } catch (const Error& error) {
          errors[i] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    ::waitpid(child, nullptr, 0);
    for (const std::string& each : errors) {
      const QString error = QString::fromStdString(each);
      QVERIFY2(
          error.startsWith("rank 1 (process " + QString::number(child) + " on ") && (error.contains("ended") || error.contains("was lost")),
          qPrintable(error));
    }
    QVERIFY(now() - start < 10);
  }

  /// A rank whose process is stopped keeps its sockets and says nothing.
  void a_silent_rank_is_named_data() { rows_of_calls(); }
  void a_silent_rank_is_named() {
    QFETCH(int, call);
    std::vector<RankSockets> sockets = connected_ranks(2);
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        SocketCommunicator communicator(std::move(sockets[1]));
        ::raise(SIGSTOP);
      } catch (...) {
      }
      ::_exit(0);
    }
    std::string error, told;
    const double start = now();
    try {
      SocketCommunicator communicator(std::move(sockets[0]), {.silence = 2, .lost = [&](const std::string& line) { told = line; }});
      sockets.clear();
      calls()[static_cast<size_t>(call)].second(communicator);
      if (call == 2) communicator.any(false);  // whoever broadcasts waits for nobody
    } catch (const RankLost& lost) {
      error = lost.what();
    }
    const double seconds = now() - start;
    ::kill(child, SIGKILL);
    const QString expected = "rank 1 (process " + QString::number(child) + " on ";
    QVERIFY2(QString::fromStdString(error).startsWith(expected) && error.ends_with("gives no sign of life for 2 s"), error.c_str());
    QCOMPARE(told, error);
    QVERIFY2(seconds > 1.5 && seconds < 6, qPrintable(QString::number(seconds)));
  }

  /// What a rank does between two calls may take longer than the silence that is allowed.
  void a_slow_rank_is_waited_for() {
    const auto errors = as_ranks(2,
                                 [](Communicator& c) {
                                   if (c.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
                                   c.barrier();
                                 },
                                 {.silence = 1.5});
    QCOMPARE(errors, none(2));
  }

  /// Of ranks that do not get on, those that wait name the one that is furthest behind; it hears of it.
  void a_rank_that_hangs_at_work_is_named_data() {
    QTest::addColumn<bool>("all_at_work");
    QTest::newRow("others wait") << false;
    QTest::newRow("all stand still") << true;
  }
  void a_rank_that_hangs_at_work_is_named() {
    QFETCH(bool, all_at_work);
    const double start = now();
    const auto errors = as_ranks(3,
                                 [&](Communicator& c) {
                                   c.barrier();
                                   const AtPace at_work(Progress::Pace::steady);
                                   if (c.rank() == 1 || all_at_work) {  // a call that carries no sign, as on a GPU, is hung in
                                     if (c.rank() != 1) come_to_meeting();
                                     std::this_thread::sleep_for(std::chrono::seconds(4));
                                   }
                                   c.barrier();
                                 },
                                 {.silence = 1.5});
    for (const size_t rank : {0, 2}) {
      const QString error = QString::fromStdString(errors[rank]);
      QVERIFY2(error.startsWith("rank 1 (process ") && error.contains(" hangs"), qPrintable(error));
    }
    QVERIFY2(errors[1].ends_with("has given this rank up as hung"), errors[1].c_str());
    QVERIFY(now() - start < 6);
  }

  /// Neither what is done for the first time nor steps with signs of getting on count as hung, however long they take.
  void work_that_gets_on_is_waited_for_data() {
    QTest::addColumn<bool>("first");
    QTest::newRow("for the first time") << true;
    QTest::newRow("by and by") << false;
  }
  void work_that_gets_on_is_waited_for() {
    QFETCH(bool, first);
    const auto errors = as_ranks(2,
                                 [&](Communicator& c) {
                                   c.barrier();
                                   const AtPace at_work(first ? Progress::Pace::first : Progress::Pace::steady);
                                   for (int i = 0; c.rank() == 1 && i < 8; ++i) {
                                     if (!first) raise_progress();
                                     std::this_thread::sleep_for(std::chrono::milliseconds(500));
                                   }
                                   c.barrier();
                                 },
                                 {.silence = 1.5});
    QCOMPARE(errors, none(2));
  }

  /// Patience follows what work took, but for the first time and for the time in which the process was stopped.
  void patience_is_learned() {
    using Pace = Progress::Pace;
    Patience patience(15);
    double time = 0;
    uint64_t count = 0;
    const auto stand = [&](Pace pace, double seconds) {
      patience.see({pace, ++count, 0}, time);
      for (double end = time + seconds; time < end - 1e-6;) patience.see({pace, count, 0}, time += 0.25);
      const double allowed = patience.seconds();
      patience.see({pace, ++count, 0}, time += 0.25);
      return allowed;
    };
    QCOMPARE(stand(Pace::aside, 1000), 15.0);
    QCOMPARE(stand(Pace::first, 100), 600.0);
    QCOMPARE(stand(Pace::steady, 2), 15.0);  // the first time taught nothing
    QCOMPARE(stand(Pace::settling, 8), 600.0);
    QCOMPARE(stand(Pace::steady, 20), 40.0);  // while it stands, what it did before decides
    QCOMPARE(stand(Pace::waiting, 60), 100.0);
    QCOMPARE(stand(Pace::steady, 1), 100.0);
    Patience stopped(15);
    stopped.see({Pace::steady, 1, 0}, 0);
    stopped.see({Pace::steady, 1, 0}, 3600);
    QCOMPARE(stopped.standstill().seconds(), 1.0);
    stopped.see({Pace::steady, 2, 0}, 3601);
    QCOMPARE(stopped.seconds(), 15.0);
  }

  /// A rank that is busy when another one is lost has so long, and is then ended from outside.
  void a_busy_rank_is_overdue() {
    std::atomic<int> told = 0;
    std::vector<RankSockets> sockets = connected_ranks(2);
    const std::vector<int> ends = ends_of(sockets[1]);
    const double start = now();
    double seconds = 0;
    as_ranks(std::move(sockets),
             [&](Communicator& c) {
               if (c.rank() == 1) return end(ends);
               while (told == 0 && now() - start < 10) std::this_thread::sleep_for(std::chrono::milliseconds(20));
               seconds = now() - start;
             },
             {.grace = 1, .overdue = [&](const std::string&) { ++told; }});
    QVERIFY(told > 0);
    QVERIFY2(seconds > 0.9 && seconds < 3, qPrintable(QString::number(seconds)));
  }

  /// Who ends in good order, though the others have more to do, is not lost.
  void a_goodbye_is_no_loss() {
    std::atomic<int> lost = 0;
    as_ranks(2,
             [](Communicator& c) {
               c.barrier();
               if (c.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(3));
             },
             {.silence = 1.5, .lost = [&](const std::string&) { ++lost; }});
    QCOMPARE(lost.load(), 0);
  }

  void ranks_at_different_calls_say_so() {
    const auto errors = as_ranks(2, [](Communicator& c) {
      if (c.rank() == 0)
        c.broadcast("x");
      else
        c.any(true);
    });
    QVERIFY2(errors[1].find("rank 0") == 0 && errors[1].find("broadcast") != std::string::npos, errors[1].c_str());
  }
};

}  // namespace saccade::test

QTEST_APPLESS_MAIN(saccade::test::CommunicatorTest)
#include "communicator_test.moc"

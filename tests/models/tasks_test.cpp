#include "models/corpus/tasks.h"

#include <QDirIterator>
#include <QtTest>
#include <array>
#include <barrier>
#include <filesystem>
#include <set>
#include <thread>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"

namespace saccade::test {

class TasksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { qputenv("SACCADE_DATA", (folder_.path() + "/data").toUtf8()); }

  void answers_stand_before_data() {
    QTest::addColumn<QString>("task");
    QTest::addColumn<int>("length");
    for (const char* task : {"task-copy", "task-mqar", "task-passkey"})
      for (int length : {96, 97, 256, 1024, 4096, 5000, 20000})
        QTest::newRow(qPrintable(QString("%1 %2").arg(task).arg(length))) << task << length;
  }
  void answers_stand_before() {
    QFETCH(QString, task);
    QFETCH(int, length);
    const std::string name = task.toStdString();
    std::set<std::string> different;
    for (uint64_t i = 0; i < 20; ++i) {
      const std::string text = make_task_document(name, length, 3, i);
      QVERIFY(text.size() <= static_cast<size_t>(length) && text.size() + 24 > static_cast<size_t>(length) && text.ends_with('\n'));
      const auto answers = find_task_answers(name, text);
      QVERIFY(!answers.empty());
      for (const auto& answer : answers) {
        QVERIFY(answer.size > 0 && answer.source + answer.size <= answer.begin &&
                answer.begin + answer.size < static_cast<int64_t>(text.size()));
        QCOMPARE(text.substr(answer.begin, answer.size), text.substr(answer.source, answer.size));
      }
      different.insert(text);
      QCOMPARE(make_task_document(name, length, 3, i), text);
      QVERIFY(make_task_document(name, length, 4, i) != text);
    }
    QCOMPARE(different.size(), size_t(20));
  }

  void mqar_asks_every_key_once() {
    const std::string text = make_task_document("task-mqar", 1024, 1, 0);
    const auto answers = find_task_answers("task-mqar", text);
    std::set<int64_t> sources;
    std::set<std::string> keys;
    for (const auto& answer : answers) {
      sources.insert(answer.source);
      keys.insert(text.substr(answer.begin - 3, 2));
    }
    QCOMPARE(sources.size(), answers.size());
    QCOMPARE(keys.size(), answers.size());
    QCOMPARE(answers.size(), size_t((1024 - 2) / 12));
  }

  void other_text_has_no_answers() {
    for (const char* task : {"task-copy", "task-mqar", "task-passkey"})
      for (const char* text : {"", "copy ab = ac\n", "copy", "ab:cd ? ab:ce\n", "ab ? cd\n",
                               "The pass key is 12345. What is the pass key? The pass key is 12346.\n"})
        QVERIFY(find_task_answers(task, text).empty());
    QVERIFY_THROWS_EXCEPTION(UsageError, make_task_document("task-other", 100, 1, 0));
    QVERIFY_THROWS_EXCEPTION(UsageError, make_task_document("task-passkey", 50, 1, 0));
  }

  void corpora_are_made_on_first_use() {
    const Corpus corpus = Corpus::open("task-mqar.seed-3.lengths-64-128.kilobytes-20");
    QCOMPARE(corpus.domains().size(), size_t(2));
    QVERIFY(corpus.has_domain("length-64") && corpus.has_domain("length-128"));
    for (const auto& info : corpus.domains()) {
      QVERIFY(info.bytes.at("train") >= 20'000 && info.bytes.at("train") < 20'200);
      QVERIFY(info.bytes.at("validation") >= 1000 && info.bytes.at("test") >= 1000);
    }
    std::set<std::string> seen;
    int64_t count = 0;
    for (Split split : {Split::train, Split::validation, Split::test})
      corpus.each_document("length-64", split, [&](std::string_view document) {
        seen.emplace(document);
        ++count;
        return true;
      });
    QCOMPARE(static_cast<int64_t>(seen.size()), count);
    QVERIFY(Corpus::open("task-mqar.seed-4.lengths-64-128.kilobytes-20").hash() != corpus.hash());
    for (const char* name : {"task-copy.seed-x", "task-copy.lengths", "task-copy.lengths-8", "task-copy.colour-red", "task-copy.seed-0"})
      QVERIFY_THROWS_EXCEPTION(UsageError, Corpus::open(name));
  }

  /// As when two runs are started where no run was before.
  void several_may_make_a_corpus_at_once() {
    const std::string name = "task-copy.lengths-64.kilobytes-5";
    for (int round = 0; round < 20; ++round) {
      std::filesystem::remove_all((folder_.path() + "/data/corpora").toStdString());
      std::array<std::string, 4> hashes;
      std::barrier start(static_cast<std::ptrdiff_t>(hashes.size()));
      std::vector<std::thread> threads;
      for (std::string& hash : hashes)
        threads.emplace_back([&] {
          start.arrive_and_wait();
          try {
            hash = Corpus::open(name).hash();
          } catch (const std::exception& error) {
            hash = error.what();
          }
        });
      for (std::thread& thread : threads) thread.join();
      for (const std::string& hash : hashes) QCOMPARE(hash, Corpus::open(name).hash());
      QDirIterator left((folder_.path() + "/data/corpora"), QDir::Dirs | QDir::Hidden | QDir::NoDotAndDotDot);
      QCOMPARE(left.next(), folder_.path() + "/data/corpora/" + QString::fromStdString(name));
      QVERIFY(!left.hasNext());
    }
  }

 private:
  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TasksTest)
#include "tasks_test.moc"

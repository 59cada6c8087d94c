#include <QtTest>

#include "analysis/runs/history.h"
#include "analysis/runs/record_json.h"

namespace saccade::test {

class TaskRecordTest : public QObject {
  Q_OBJECT

  static TaskScoreRecord record(double value, int64_t items, const std::string& options = {}, bool partial = false, int64_t step = 10) {
    TaskScoreRecord scores{step, "arc-easy", "acc", 0.25, "data", "checkpoint", {{"acc", value, 0.1, items}}};
    scores.options = options, scores.partial = partial, scores.limit = partial ? items : 0, scores.shots = 2, scores.max_length = 64;
    return scores;
  }
  static RunHistory history(const std::vector<TaskScoreRecord>& records) {
    RunHistory all;
    for (const TaskScoreRecord& each : records) all.apply(to_record(each));
    return all;
  }

 private Q_SLOTS:
  void a_record_says_how_it_was_scored() {
    const TaskScoreRecord read = task_scores_from(to_record(record(0.5, 3, "limit-3-shots-2", true)));
    QCOMPARE(read.options, std::string("limit-3-shots-2"));
    QVERIFY(read.partial);
    QCOMPARE(read.limit, int64_t{3});
    QCOMPARE(read.shots, int64_t{2});
    QCOMPARE(read.max_length, int64_t{64});
  }

  /// As versions before wrote it.
  void a_record_that_does_not_say_is_taken_for_whole() {
    Record old = to_record(record(0.5, 3));
    for (const char* key : {"options", "partial", "limit", "shots", "max_length"}) old.erase(key);
    const TaskScoreRecord read = task_scores_from(old);
    QVERIFY(read.options.empty() && !read.partial);
    QCOMPARE(read.scores.at(0).value, 0.5);
  }

  void what_is_scored_later_on_fewer_items_takes_no_place() {
    const RunHistory all = history({record(0.5, 100), record(1, 1, "limit-1", true), record(0.25, 100, {}, false, 20)});
    QCOMPARE(all.task_scores().size(), size_t{3});
    QCOMPARE(all.preferred_task_scores().size(), size_t{2});
    QCOMPARE(all.preferred_task_scores()[0].scores[0].value, 0.5);
    QCOMPARE(all.preferred_task_scores()[1].step, int64_t{20});
  }

  void the_whole_comes_before_the_usual_and_that_before_more_items() {
    QVERIFY(is_preferred(record(0, 50, "shots-5"), record(0, 10, "limit-10", true)));
    QVERIFY(is_preferred(record(0, 50), record(0, 50, "shots-5")));
    QVERIFY(is_preferred(record(0, 20, "limit-20", true), record(0, 10, "limit-10", true)));
    QVERIFY(!is_preferred(record(0, 50), record(0, 50)));
  }

  void the_same_options_again_take_the_place_of_the_older() {
    const RunHistory all = history({record(0.5, 1, "limit-1", true), record(0.75, 1, "limit-1", true)});
    QCOMPARE(all.task_scores().size(), size_t{1});
    QCOMPARE(all.preferred_task_scores().size(), size_t{1});
    QCOMPARE(all.preferred_task_scores()[0].scores[0].value, 0.75);
  }

  void going_back_takes_scores_behind_it() {
    RunHistory all = history({record(0.5, 100), record(0.25, 100, {}, false, 20)});
    all.apply(resume_record(10));
    QCOMPARE(all.task_scores().size(), size_t{1});
    QCOMPARE(all.preferred_task_scores().size(), size_t{1});
  }
};

}  // namespace saccade::test
QTEST_GUILESS_MAIN(saccade::test::TaskRecordTest)
#include "task_record_test.moc"

#include <QtTest>
#include <bit>
#include <cmath>
#include <numbers>

#include "models/training/trainer.h"

namespace saccade::test {

class ScheduleTest : public QObject {
  Q_OBJECT

  static TrainingConfig training(const std::string& schedule) {
    TrainingConfig t;
    t.steps = 110, t.warmup_steps = 10, t.learning_rate = 2, t.min_lr_ratio = 0.1, t.schedule = schedule;
    return t;
  }

 private Q_SLOTS:
  void learning_rate_data() {
    QTest::addColumn<QString>("schedule");
    QTest::addColumn<int>("step");
    QTest::addColumn<double>("expected");
    for (const char* schedule : {"cosine", "linear", "constant"}) {
      QTest::addRow("%s first", schedule) << schedule << 1 << 0.2;
      QTest::addRow("%s warm", schedule) << schedule << 10 << 2.0;
    }
    QTest::newRow("cosine quarter") << "cosine" << 35 << 0.2 + 1.8 * 0.5 * (1 + std::sqrt(0.5));
    QTest::newRow("cosine middle") << "cosine" << 60 << 1.1;
    QTest::newRow("cosine end") << "cosine" << 110 << 0.2;
    QTest::newRow("linear middle") << "linear" << 60 << 1.1;
    QTest::newRow("linear quarter") << "linear" << 35 << 1.55;
    QTest::newRow("linear end") << "linear" << 110 << 0.2;
    QTest::newRow("constant end") << "constant" << 110 << 2.0;
    QTest::newRow("wsd stable") << "wsd" << 88 << 2.0;  // 22 steps of cooldown
    QTest::newRow("wsd half-way") << "wsd" << 99 << 0.2 + 1.8 * (1 - std::sqrt(0.5));
    QTest::newRow("wsd end") << "wsd" << 110 << 0.2;
  }
  void learning_rate() {
    QFETCH(QString, schedule);
    QFETCH(int, step);
    QFETCH(double, expected);
    QVERIFY(std::abs(scheduled_learning_rate(training(schedule.toStdString()), step) - expected) < 1e-12);
  }

  void forms_of_a_cooldown_data() {
    QTest::addColumn<QString>("form");
    QTest::addColumn<double>("half");
    QTest::newRow("1-sqrt") << "1-sqrt" << 1 - std::sqrt(0.5);
    QTest::newRow("linear") << "linear" << 0.5;
    QTest::newRow("cosine") << "cosine" << 0.5;
  }
  void forms_of_a_cooldown() {
    QFETCH(QString, form);
    QFETCH(double, half);
    TrainingConfig t = training("wsd");
    t.min_lr_ratio = 0;
    t.schedule_settings = {{"cooldown_steps", 10}, {"cooldown_form", form.toStdString()}};
    QCOMPARE(scheduled_learning_rate(t, 100), 2.0);
    QVERIFY(scheduled_learning_rate(t, 101) < 2.0);
    QVERIFY(std::abs(scheduled_learning_rate(t, 105) - 2 * half) < 1e-12);
    QVERIFY(std::abs(scheduled_learning_rate(t, 110)) < 1e-12);
  }

  /// From any earlier version: the formula as it stood before schedules were entries of a registry, to the last bit.
  void cosine_has_the_same_bits_as_ever() {
    TrainingConfig t;
    for (int64_t step = 1; step <= t.steps; ++step) {
      const double progress = static_cast<double>(step - t.warmup_steps) / static_cast<double>(t.steps - t.warmup_steps);
      const double course = 0.5 * (1 + std::cos(std::numbers::pi * progress));
      const double expected = step <= t.warmup_steps ? t.learning_rate * static_cast<double>(step) / static_cast<double>(t.warmup_steps)
                                                     : t.learning_rate * (t.min_lr_ratio + (1 - t.min_lr_ratio) * course);
      QCOMPARE(std::bit_cast<uint64_t>(scheduled_learning_rate(t, step)), std::bit_cast<uint64_t>(expected));
    }
  }

  void a_share_of_the_steps_warms_up() {
    TrainingConfig t = training("linear");
    t.warmup_share = 0.5;
    QCOMPARE(warmup_steps(t), int64_t{55});
    QVERIFY(std::abs(scheduled_learning_rate(t, 11) - 0.4) < 1e-12);
  }

  void a_batch_grows_in_whole_multiples() {
    TrainingConfig t;
    t.batch_tokens = 800, t.gradient_accumulation = 8, t.batch_warmup_tokens = 200, t.batch_warmup_steps = 6;
    std::vector<int64_t> counts;
    for (int64_t step = 1; step <= 8; ++step) counts.push_back(micro_batches(t, step));
    QCOMPARE(counts, (std::vector<int64_t>{2, 2, 4, 4, 6, 6, 8, 8}));
    t.gradient_accumulation = 4;  // the same tokens in larger micro-batches
    QCOMPARE(micro_batches(t, 3) * micro_batch_tokens(t), int64_t{400});
    t.batch_warmup_steps = 0;
    QCOMPARE(micro_batches(t, 1), int64_t{4});
  }

  void without_warm_up_or_all_warm_up() {
    TrainingConfig t = training("linear");
    t.warmup_steps = 0;
    QVERIFY(scheduled_learning_rate(t, 1) > 1.9 && scheduled_learning_rate(t, 1) < 2);
    t.warmup_steps = t.steps;
    QCOMPARE(scheduled_learning_rate(t, t.steps), 2.0);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ScheduleTest)
#include "schedule_test.moc"

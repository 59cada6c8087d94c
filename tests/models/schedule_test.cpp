#include <QtTest>
#include <cmath>

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
  }
  void learning_rate() {
    QFETCH(QString, schedule);
    QFETCH(int, step);
    QFETCH(double, expected);
    QVERIFY(std::abs(scheduled_learning_rate(training(schedule.toStdString()), step) - expected) < 1e-12);
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

#include <QtTest>

#include "analysis/training/loss_course.h"
#include "analysis/training/training_run.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

using nlohmann::json;

/// Recall of several keys (arXiv:2312.04927, section 3.1) as attention is known to learn it: 4 pairs in 64 tokens, width 64, two layers.
class RecallTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  /// Trained until 99 % of the validation answers are right, or `steps` are over.
  RunHistory trained(const char* name, int64_t window, int64_t steps) const {
    const json config{
        {"architecture", {{"block", "llama"}, {"mixer", "attention"}, {"width", 64}, {"layers", 2}, {"heads", 2}, {"window", window}}},
        {"data", {{"task", "mqar"}, {"train", {"length-64-pairs-4-vocabulary-128"}}, {"ood", json::array()}}},
        {"training",
         {{"steps", steps},
          {"batch_tokens", 8192},
          {"learning_rate", 0.002},
          {"warmup_steps", 100},
          {"evaluate_every", 50},
          {"probe_every", 1500},
          {"stop_at_accuracy", 0.99}}},
        {"device", "cpu"}};
    const std::filesystem::path run = folder_.filePath(name).toStdString();
    std::atomic<bool> stop = false;
    if (train_run(resolve_config(config, name), run, {}, stop) != RunState::finished) qFatal("%s did not finish", name);
    return recorded_history(run);
  }
  static double accuracy(const RunHistory& history) {
    return history.find("validation/accuracy/length-64-pairs-4-vocabulary-128")->value.values().back();
  }

 private Q_SLOTS:
  void attention_recalls_and_a_window_does_not() {
    const RunHistory attention = trained("attention", 0, 1500);
    QVERIFY2(accuracy(attention) >= 0.99, qPrintable(QString::number(accuracy(attention))));
    const RunHistory window = trained("window", 8, attention.step());
    QVERIFY2(accuracy(window) < 0.9, qPrintable(QString::number(accuracy(window))));
    qInfo("%d steps: attention %.4f, window of 8 %.4f", static_cast<int>(attention.step()), accuracy(attention), accuracy(window));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RecallTest)
#include "recall_test.moc"

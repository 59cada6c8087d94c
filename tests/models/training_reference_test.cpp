#include <QtTest>
#include <cmath>
#include <fstream>

#include "kernels/engine/transfer.h"
#include "models/json.h"
#include "models/training/trainer.h"
#include "models/training/training_step.h"

namespace saccade::test {

/// Training steps against PyTorch's: models, loss, gradients, clipping, AdamW and schedule together (tests/golden/training_reference.py).
class TrainingReferenceTest : public QObject {
  Q_OBJECT

  static nlohmann::json golden() {
    std::ifstream file(qEnvironmentVariable("SACCADE_GOLDEN_DEFAULT").toStdString() + "/training_steps.json");
    return nlohmann::json::parse(file);
  }

  /// As training_reference.py has them, all three.
  static double number(const std::string& name, int64_t index) {
    int64_t h = 17;
    for (const char letter : name) h = (h * 31 + letter) % 1000003;
    return static_cast<double>((index * index * 31 + index * 7919 + h) % 1009 - 504) / 512;
  }
  static std::vector<double> values(const Parameter& parameter) {
    const double middle = parameter.name.ends_with("norm") ? 1 : 0;
    std::vector<double> all(static_cast<size_t>(parameter.value.size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = middle + 0.1 * number(parameter.name, static_cast<int64_t>(i));
    return all;
  }
  static void fill(std::span<int32_t> tokens, int64_t step, int64_t vocabulary) {
    for (int64_t i = 0; i < static_cast<int64_t>(tokens.size()); ++i)
      tokens[static_cast<size_t>(i)] = static_cast<int32_t>((i * i * 7 + i * 3 + step * step * 5 + step) % vocabulary);
  }

 private Q_SLOTS:
  void is_pytorchs_for_twenty_steps_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<QString>("precision");
    QTest::addColumn<double>("limit");
    for (int model = 0; model < 2; ++model) {
      const std::string name = golden().at("models").at(static_cast<size_t>(model)).at("architecture").at("block");
      QTest::addRow("%s in double", name.c_str()) << model << "f64" << 1e-11;
      QTest::addRow("%s in float", name.c_str()) << model << "f32" << 1e-4;
    }
  }
  void is_pytorchs_for_twenty_steps() {
    QFETCH(int, model);
    QFETCH(QString, precision);
    QFETCH(double, limit);
    const nlohmann::json all = golden(), row = all.at("models").at(static_cast<size_t>(model));
    const int64_t vocabulary = all.at("vocabulary");
    const RunConfig config = resolve_config({{"architecture", row.at("architecture")},
                                             {"data", {{"sequence_length", all.at("sequence_length")}}},
                                             {"training", all.at("training")},
                                             {"device", "cpu"},
                                             {"precision", precision.toStdString()}},
                                            "reference");
    TrainingStep step(config, vocabulary, Device::cpu());
    for (const Parameter& parameter : step.model().parameters()) from_doubles(parameter.value, values(parameter));
    step.refresh_copies();
    const std::vector<double> losses = row.at("losses"), norms = row.at("gradient_norms");
    for (size_t i = 0; i < losses.size(); ++i) {
      const auto number = static_cast<int64_t>(i) + 1;
      fill(step.tokens(), number, vocabulary);
      fill(step.targets(), number + 1000, vocabulary);
      step.begin();
      step.forward_backward();
      step.gradient_norm();
      step.update(scheduled_learning_rate(config.training, number), number);
      const TrainingStep::Measures got = step.measures();
      const double loss = std::abs(got.loss / losses[i] - 1), norm = std::abs(got.gradient_norm / norms[i] - 1);
      QVERIFY2(loss <= limit && norm <= 10 * limit, qPrintable(QString("step %1: loss %2 for %3, gradient norm %4 for %5")
                                                                   .arg(number)
                                                                   .arg(got.loss, 0, 'g', 15)
                                                                   .arg(losses[i], 0, 'g', 15)
                                                                   .arg(got.gradient_norm, 0, 'g', 15)
                                                                   .arg(norms[i], 0, 'g', 15)));
    }
    QVERIFY2(norms.front() > config.training.max_grad_norm && losses.back() < losses.front(), "the reference clips and learns");
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TrainingReferenceTest)
#include "training_reference_test.moc"

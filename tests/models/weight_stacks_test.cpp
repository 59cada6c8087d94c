#include <QtTest>

#include "models/training/training_step.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

/// Matrices that a GPU multiplies in one product: values, gradients and bf16 copies of each stack stand behind each other.
class WeightStacksTest : public QObject {
  Q_OBJECT

  static TrainingStep planned(const nlohmann::json& architecture, const std::string& precision = "bf16") {
    nlohmann::json settings{{"width", 64}, {"layers", 2}};
    settings.update(architecture);
    return TrainingStep(
        resolve_config({{"architecture", settings}, {"data", {{"sequence_length", 256}}}, {"precision", precision}}, "test"), 50,
        Device::plan(Engine::cuda));
  }
  static const AdamWSlot& slot(const TrainingStep& step, const std::string& name) {
    const auto& parameters = step.model().parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].name == name) return step.slots()[i];
    throw std::logic_error("no parameter " + name);
  }
  /// How many of values, gradients and copies stand behind those of another parameter.
  static int following(const TrainingStep& step, const std::string& name, const std::string& before) {
    const AdamWSlot &a = slot(step, before), &b = slot(step, name);
    return b.value.follows(a.value) + b.grad.follows(a.grad) + (b.compute_copy && b.compute_copy.follows(a.compute_copy));
  }

 private Q_SLOTS:
  void projections_data() {
    QTest::addColumn<QString>("block");
    QTest::addColumn<QString>("mixer");
    for (const char* block : {"llama", "gpt", "mamba"})
      for (const char* mixer : {"attention", "top1_element", "top1_chunk"}) QTest::addRow("%s, %s", block, mixer) << block << mixer;
  }
  void projections() {
    QFETCH(QString, block);
    QFETCH(QString, mixer);
    const TrainingStep step = planned({{"block", block.toStdString()}, {"mixer", mixer.toStdString()}, {"heads", 2}});
    for (const std::string layer : {"layer0.", "layer1."}) {
      QCOMPARE(following(step, layer + "key", layer + "query"), 3);
      QCOMPARE(following(step, layer + "value", layer + "key"), 3);
      QCOMPARE(following(step, layer + "output", layer + "value"), 0);
    }
  }

  void gate_and_up() {
    const TrainingStep step = planned({{"block", "llama"}, {"mixer", "mamba2"}, {"heads", 2}});
    QCOMPARE(following(step, "layer0.up", "layer0.gate"), 3);
    QCOMPARE(following(step, "layer0.down", "layer0.up"), 0);
  }

  /// Constant keys are a table of the position: queries and values are two products.
  void no_stack_without_keys() {
    const TrainingStep step = planned({{"block", "llama"}, {"mixer", "attention"}, {"relation", "constant-keys"}, {"heads", 2}});
    QCOMPARE(following(step, "layer0.value", "layer0.query"), 0);
  }

  /// Rows that would begin where kernels cannot read stand apart.
  void odd_widths_stand_apart() {
    const TrainingStep step = planned({{"block", "llama"}, {"mixer", "attention"}, {"heads", 1}, {"width", 10}});
    QCOMPARE(following(step, "layer0.key", "layer0.query"), 0);
  }

  void a_stack_refuses_what_does_not_fit() {
    Arena arena(Device::plan(Engine::cpu));
    ParameterMaker make(arena, DType::f32, 1, true);
    const ParameterMaker::Stack stack(make, {16, 16}, 8);
    make.constant("bias", {16}, 0);  // vectors stand apart
    make.zeros("first", {16, 8});
    QVERIFY_THROWS_EXCEPTION(std::logic_error, make.zeros("wide", {16, 9}));
    QVERIFY_THROWS_EXCEPTION(std::logic_error, make.zeros("high", {17, 8}));
    QVERIFY_THROWS_EXCEPTION(std::logic_error, ParameterMaker::Stack(make, {16}, 8));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::WeightStacksTest)
#include "weight_stacks_test.moc"

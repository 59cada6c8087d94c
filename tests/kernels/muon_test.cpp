#include "kernels/ops/muon/muon.h"

#include <cmath>
#include <fstream>

#include "kernels/engine/parallel.h"
#include "kernels/engine/transfer.h"
#include "models/json.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class MuonTest : public QObject {
  Q_OBJECT

  /// Exact in float: as tests/golden/muon_reference.py has it.
  static Array numbers(const Shape& shape, int64_t matrix, int64_t step) {
    Array a{shape, std::vector<double>(static_cast<size_t>(shape.size()))};
    for (int64_t i = 0; i < shape.size(); ++i)
      a.values[static_cast<size_t>(i)] = static_cast<double>((i * i * 31 + i * 7919 + step * 104729 + matrix * 613) % 1009 - 504) / 512;
    return a;
  }

  struct Fixture {
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    Tensor norm = arena.allocate({1}, DType::f64), rate = arena.allocate({1}, DType::f64);
    std::vector<MuonSlot> slots;
    void add(const Shape& shape, DType dtype) {
      const auto matrix = static_cast<int64_t>(slots.size());
      const Array zero{shape, std::vector<double>(static_cast<size_t>(shape.size()))};
      slots.push_back({to_tensor(numbers(shape, matrix, 0), dtype, arena), to_tensor(zero, dtype, arena), to_tensor(zero, dtype, arena)});
    }
    void step(const Muon& options, int64_t number, double learning_rate, double clip = 0) {
      for (size_t i = 0; i < slots.size(); ++i)
        from_doubles(slots[i].grad, numbers(slots[i].value.shape(), static_cast<int64_t>(i), number).values);
      *rate.data<double>() = learning_rate;
      muon_step(tape, slots, options, rate, clip, norm);
    }
  };

  static nlohmann::json golden() {
    std::ifstream file(qEnvironmentVariable("SACCADE_GOLDEN_DEFAULT").toStdString() + "/muon.json");
    return nlohmann::json::parse(file);
  }

 private Q_SLOTS:
  void is_pytorchs_for_twenty_steps_data() {
    QTest::addColumn<int>("number");
    QTest::addColumn<bool>("single");
    for (int i = 0; i < 4; ++i)
      for (bool single : {true, false}) QTest::addRow("case %d, %s", i, single ? "float" : "double") << i << single;
  }
  void is_pytorchs_for_twenty_steps() {
    QFETCH(int, number);
    QFETCH(bool, single);
    const nlohmann::json all = golden(), row = all.at("cases").at(static_cast<size_t>(number));
    Muon options;
    options.nesterov = row.at("nesterov");
    options.match_rms_adamw = row.at("match_rms_adamw");
    options.weight_decay = all.at("weight_decay");
    Fixture f;
    *f.norm.data<double>() = 1;
    for (const auto& shape : all.at("shapes")) f.add({shape.at(0), shape.at(1)}, single ? DType::f32 : DType::f64);
    for (int64_t step = 1; step <= all.at("steps").get<int64_t>(); ++step) f.step(options, step, all.at("learning_rate"));
    double worst = 0;
    for (size_t i = 0; i < f.slots.size(); ++i) {
      const std::vector<double> ours = to_doubles(f.slots[i].value), theirs = row.at("weights").at(i);
      double size = 0, apart = 0;
      for (size_t j = 0; j < ours.size(); ++j) {
        size = std::max(size, std::abs(theirs[j]));
        apart = std::max(apart, std::abs(ours[j] - theirs[j]));
      }
      worst = std::max(worst, apart / size);
    }
    qInfo("largest difference over the largest weight: %.2g", worst);
    QVERIFY2(worst <= 1e-6, qPrintable(QString::number(worst)));
  }

  /// Singular values end between about 0.7 and 1.2 (arXiv:2502.16982, section 2.1): the iteration is there, not only the sign of it.
  void directions_are_nearly_orthonormal() {
    for (const Shape& shape : {Shape{4, 9}, Shape{9, 4}}) {
      Fixture f;
      *f.norm.data<double>() = 1;
      f.add(shape, DType::f64);
      Muon options;
      options.weight_decay = 0;
      const std::vector<double> before = to_doubles(f.slots[0].value);
      f.step(options, 1, 1.0);
      const std::vector<double> after = to_doubles(f.slots[0].value);
      double squares = 0;
      for (size_t i = 0; i < after.size(); ++i) squares += std::pow((after[i] - before[i]) / muon_ratio(options, shape), 2);
      QVERIFY2(squares > 4 * 0.45 && squares < 4 * 1.45, qPrintable(QString::number(squares)));  // the sum of their squares
    }
  }

  void clips_and_multiplies_the_rate() {
    Muon options;
    Fixture clipped, small;
    for (Fixture* f : {&clipped, &small}) f->add({5, 7}, DType::f64);
    *clipped.norm.data<double>() = 4;
    *small.norm.data<double>() = 4;
    clipped.step(options, 1, 0.1, 1.0);
    QVERIFY(std::abs(to_doubles(clipped.slots[0].momentum)[3] - 0.05 * 0.25 * numbers({5, 7}, 0, 1).values[3]) < 1e-15);
    small.slots[0].rate = 0.5;
    small.step(options, 1, 0.2, 1.0);
    QCOMPARE(to_doubles(small.slots[0].value), to_doubles(clipped.slots[0].value));
  }

  void a_norm_that_is_not_finite_touches_nothing() {
    Fixture f;
    f.add({5, 7}, DType::f32);
    *f.norm.data<double>() = std::nan("");
    f.step({}, 1, 0.1);
    QCOMPARE(to_doubles(f.slots[0].value), numbers({5, 7}, 0, 0).values);
    QCOMPARE(to_doubles(f.slots[0].momentum), std::vector<double>(35));
  }

  void threads_change_nothing() {
    std::vector<std::vector<double>> results;
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      Fixture f;
      *f.norm.data<double>() = 1;
      for (const Shape& shape : {Shape{1, 1}, Shape{131, 257}, Shape{257, 131}}) f.add(shape, DType::f32);
      for (int64_t step = 1; step <= 3; ++step) f.step({}, step, 0.1);
      std::vector<double> all;
      for (const MuonSlot& slot : f.slots)
        for (const double x : to_doubles(slot.value)) all.push_back(x);
      results.push_back(all);
    }
    QVERIFY(results[0] == results[1] && results[0] == results[2]);
    QVERIFY(std::isfinite(results[0][1000]));
  }

  void refuses_what_is_no_matrix() {
    Fixture f;
    f.add({4, 3}, DType::f32);
    f.slots[0].value = f.slots[0].value.reshape({12});
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, muon_step(f.tape, f.slots, {}, f.rate, 0, f.norm));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::MuonTest)
#include "muon_test.moc"

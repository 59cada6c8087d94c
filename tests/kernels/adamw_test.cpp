#include "kernels/ops/adamw/adamw.h"

#include <cmath>

#include "tests/support/op_checks.h"

namespace saccade::test {

class AdamWTest : public QObject {
  Q_OBJECT

  struct State {
    Array w, g, m, v;
  };
  static State state(int64_t n, uint64_t seed) {
    State s{random_array({n}, seed), random_array({n}, seed + 1), random_array({n}, seed + 2, 0.1), random_array({n}, seed + 3, 0.1)};
    for (double& x : s.v.values) x = std::abs(x);
    return s;
  }
  /// The update as the header states it, element by element.
  static void reference(State& s, const AdamW& o, double lr, int64_t step, double scale, bool decay) {
    for (size_t i = 0; i < s.w.values.size(); ++i) {
      const double g = s.g.values[i] * scale, w = s.w.values[i];
      double &m = s.m.values[i], &v = s.v.values[i];
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(o.beta1, step)), v_hat = v / (1 - std::pow(o.beta2, step));
      s.w.values[i] = w - lr * (m_hat / (std::sqrt(v_hat) + o.eps) + (decay ? o.weight_decay * w : 0));
    }
  }
  struct Fixture {
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    Tensor norm = arena.allocate({1}, DType::f64), rates = arena.allocate({3}, DType::f64);
    std::vector<AdamWSlot> slots;
    void step(const AdamW& options, double learning_rate, int64_t number, double clip) {
      const auto values = adamw_rates(options, learning_rate, number);
      std::copy(values.begin(), values.end(), rates.data<double>());
      adamw_step(tape, slots, options, rates, clip, norm);
    }
    void add(const State& s, DType dtype, bool decay) {
      slots.push_back(
          {to_tensor(s.w, dtype, arena), to_tensor(s.g, dtype, arena), to_tensor(s.m, dtype, arena), to_tensor(s.v, dtype, arena), decay});
    }
  };

 private Q_SLOTS:
  void update_data() {
    QTest::addColumn<bool>("single");
    QTest::addColumn<double>("clip");
    for (bool single : {false, true})
      for (double clip : {0.0, 1.0, 1e9}) QTest::addRow("%s, clip %g", single ? "float" : "double", clip) << single << clip;
  }
  void update() {
    QFETCH(bool, single);
    QFETCH(double, clip);
    const DType dtype = single ? DType::f32 : DType::f64;
    State a = state(16411, 1), b = state(1, 11);
    Fixture f;
    f.add(a, dtype, true);
    f.add(b, dtype, false);
    gradient_norm(f.tape, f.slots, f.norm);
    double squares = 0;
    for (const State* s : {&a, &b})
      for (double g : s->g.values) squares += g * g;
    const double norm = f.norm.data<double>()[0];
    QVERIFY(std::abs(norm - std::sqrt(squares)) <= (single ? 1e-7 : 1e-13) * norm);
    const AdamW options{0.9, 0.95, 1e-8, 0.1};
    f.step(options, 3e-3, 4, clip);
    const double scale = clip > 0 && norm > clip ? clip / norm : 1;
    reference(a, options, 3e-3, 4, scale, true);
    reference(b, options, 3e-3, 4, scale, false);
    const double tolerance = single ? 1e-6 : 1e-13;
    COMPARE_CLOSE(to_array(f.slots[0].value), a.w, tolerance, "weights");
    COMPARE_CLOSE(to_array(f.slots[0].first_moment), a.m, tolerance, "first moment");
    COMPARE_CLOSE(to_array(f.slots[0].second_moment), a.v, tolerance, "second moment");
    COMPARE_CLOSE(to_array(f.slots[1].value), b.w, tolerance, "weight without decay");
  }

  void threads_do_not_matter() {
    std::vector<Array> results;
    const int before = thread_count();
    for (int threads : {1, 2, 3}) {
      set_thread_count(threads);
      Fixture f;
      f.add(state(50021, 1), DType::f32, true);
      gradient_norm(f.tape, f.slots, f.norm);
      f.step({}, 1e-3, 1, 1.0);
      results.push_back(to_array(f.slots[0].value));
      results.push_back(to_array(f.norm));
    }
    set_thread_count(before);
    for (size_t i = 2; i < results.size(); ++i) QVERIFY(results[i].values == results[i % 2].values);
  }

  void not_finite() {
    State s = state(100, 1);
    s.g.values[57] = NAN;
    Fixture f;
    f.add(s, DType::f32, true);
    const Array before = to_array(f.slots[0].value);
    gradient_norm(f.tape, f.slots, f.norm);
    QVERIFY(std::isnan(f.norm.data<double>()[0]));
    f.step({}, 1e-3, 1, 1.0);
    COMPARE_CLOSE(to_array(f.slots[0].value), before, 0, "weights stay as they were");
  }

  void plan_counts_the_same() {
    Fixture f;
    f.add(state(1000, 1), DType::f32, true);
    gradient_norm(f.tape, f.slots, f.norm);
    f.step({}, 1e-3, 1, 1.0);
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const auto vector = [&] { return tape.empty({1000}, DType::f32); };
    const std::vector<AdamWSlot> slots{{vector(), vector(), vector(), vector(), true}};
    const Tensor norm = tape.empty({1}, DType::f64), rates = tape.empty({3}, DType::f64);
    const int64_t used = arena.used();
    gradient_norm(tape, slots, norm);
    adamw_step(tape, slots, {}, rates, 1.0, norm);
    QCOMPARE(tape.cost().flops, f.tape.cost().flops);
    QCOMPARE(tape.cost().bytes, f.tape.cost().bytes);
    QCOMPARE(arena.peak_used(), used);
  }

  void refused() {
    Fixture f;
    f.add(state(4, 1), DType::f32, true);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, adamw_rates({}, 1e-3, 0));
    f.slots[0].grad = f.arena.allocate({5}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, gradient_norm(f.tape, f.slots, f.norm));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AdamWTest)
#include "adamw_test.moc"

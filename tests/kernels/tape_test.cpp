#include "kernels/engine/tape.h"

#include <cmath>

#include "tests/support/compare.h"

namespace saccade::test {
namespace {

/// y = a x, written as the header shows it.
Tensor scale(Tape& tape, const Tensor& x, double a) {
  Tensor y = tape.empty(x.shape(), x.dtype());
  const Cost cost{static_cast<double>(x.size()), static_cast<double>(2 * x.bytes())};
  tape.run("scale", cost, [&] {
    for (int64_t i = 0; i < x.size(); ++i) y.data<double>()[i] = a * x.data<double>()[i];
  });
  tape.record({x}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x);
    if (!dx) return;
    t.run("scale.backward", cost, [&] {
      for (int64_t i = 0; i < x.size(); ++i) {
        double& d = dx.tensor.data<double>()[i];
        d = (dx.add ? d : 0) + a * dy.data<double>()[i];
      }
    });
  });
  return y;
}

/// y = x1 + x2 whose backward shares one tensor between both.
Tensor sum(Tape& tape, const Tensor& x1, const Tensor& x2) {
  Tensor y = tape.empty(x1.shape(), x1.dtype());
  tape.run("sum", {}, [&] {
    for (int64_t i = 0; i < y.size(); ++i) y.data<double>()[i] = x1.data<double>()[i] + x2.data<double>()[i];
  });
  tape.record({x1, x2}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    t.add_grad(x1, dy);
    t.add_grad(x2, dy);
  });
  return y;
}

/// Two outputs, 2x and 3x, of which one may stay unused.
std::pair<Tensor, Tensor> twice(Tape& tape, const Tensor& x, bool* saw_missing) {
  Tensor y = tape.empty(x.shape(), x.dtype()), z = tape.empty(x.shape(), x.dtype());
  tape.run("twice", {}, [&] { *y.data<double>() = 2 * *x.data<double>(), *z.data<double>() = 3 * *x.data<double>(); });
  tape.record({x}, {&y, &z}, [=](Tape& t) {
    *saw_missing = !t.grad(z);
    const Tensor dy = t.grad_or_zeros(y), dz = t.grad_or_zeros(z);
    const GradTarget dx = t.grad_target(x);
    t.run("twice.backward", {}, [&] {
      double& d = *dx.tensor.data<double>();
      d = (dx.add ? d : 0) + 2 * *dy.data<double>() + 3 * *dz.data<double>();
    });
  });
  return {y, z};
}

}  // namespace

class TapeTest : public QObject {
  Q_OBJECT
  Arena arena_{Device::cpu()};

  Tensor number(double x, bool differentiable = true) {
    Tensor t = to_tensor({{1}, {x}}, DType::f64, arena_);
    t.set_differentiable(differentiable);
    return t;
  }
  static double value(const Tensor& x) { return *x.data<double>(); }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void chain() {
    Tape tape(arena_, true);
    const Tensor x = number(5), buffer = number(NAN);
    tape.bind_grad(x, buffer);
    const Tensor y = scale(tape, scale(tape, x, 2), 3);
    QCOMPARE(value(y), 30.0);
    tape.backward(y);
    QCOMPARE(value(buffer), 6.0);
  }

  void backward_scales() {
    Tape tape(arena_, true);
    const Tensor x = number(5), buffer = number(NAN);
    tape.bind_grad(x, buffer);
    tape.backward(scale(tape, x, 2), 0.25);
    QCOMPARE(value(buffer), 0.5);
  }

  /// x is used three times and the gradient of the sum is one shared tensor that must not be written over.
  void shared_contributions() {
    Tape tape(arena_, true);
    const Tensor x = number(1), buffer = number(NAN);
    tape.bind_grad(x, buffer);
    const Tensor h = scale(tape, x, 1);                // dh = 1 + 2 + 2·10
    const Tensor s = sum(tape, h, scale(tape, h, 2));  // ds = 1 + 10
    const Tensor y = sum(tape, s, scale(tape, s, 10));
    tape.backward(y);
    QCOMPARE(value(buffer), 33.0);
  }

  void the_callers_gradient_stays_as_it_was() {
    Tape tape(arena_, true);
    const Tensor x = number(1), buffer = number(NAN), seed = number(7, false);
    tape.bind_grad(x, buffer);
    const Tensor h = scale(tape, x, 1);
    const Tensor y = sum(tape, h, scale(tape, h, 2));
    tape.backward({{y, seed}});
    QCOMPARE(value(buffer), 21.0);
    QCOMPARE(value(seed), 7.0);
  }

  void accumulates_until_fresh() {
    Tape tape(arena_, true);
    const Tensor x = number(1), buffer = number(NAN);
    tape.bind_grad(x, buffer);
    for (double expected : {2.0, 4.0, 6.0}) {
      tape.backward(scale(tape, x, 2));
      QCOMPARE(value(buffer), expected);
    }
    tape.fresh_grads();
    tape.backward(scale(tape, x, 5));
    QCOMPARE(value(buffer), 5.0);
  }

  void unbound_input_keeps_its_gradient_until_cleared() {
    Tape tape(arena_, true);
    const Tensor x = number(1);
    tape.backward(scale(tape, x, 2));
    QCOMPARE(value(tape.grad(x)), 2.0);
    tape.clear();
    QVERIFY(!tape.grad(x));
  }

  void unused_outputs() {
    Tape tape(arena_, true);
    const Tensor x = number(1), buffer = number(NAN);
    tape.bind_grad(x, buffer);
    bool missing = false;
    const auto [y, z] = twice(tape, x, &missing);
    scale(tape, z, 100);  // leads nowhere
    tape.backward(y);
    QVERIFY(missing);
    QCOMPARE(value(buffer), 2.0);
  }

  void nothing_reaches_an_unused_branch() {
    Tape tape(arena_, true);
    const Tensor x = number(1), other = number(1), buffer = number(7);
    tape.bind_grad(other, buffer);
    scale(tape, other, 3);
    tape.backward(scale(tape, x, 2));
    QCOMPARE(value(buffer), 7.0);
  }

  void no_gradient_asked_for() {
    Tape tape(arena_, true);
    const Tensor y = scale(tape, number(1, false), 2);
    QVERIFY(!y.differentiable());
    Tape silent(arena_, false);
    QVERIFY(!scale(silent, number(1), 2).differentiable());
  }

  void reshaped_tensors_share_their_gradient() {
    Tape tape(arena_, true);
    Tensor x = to_tensor({{2, 3}, {1, 2, 3, 4, 5, 6}}, DType::f64, arena_);
    x.set_differentiable(true);
    const Tensor y = scale(tape, x.reshape({6}), 2), z = scale(tape, x.reshape({3, 2}), 1);
    tape.backward({{sum(tape, y, z.reshape({6})), to_tensor({{6}, {1, 1, 1, 1, 1, 2}}, DType::f64, arena_)}});
    COMPARE_CLOSE(to_array(tape.grad(x)), (Array{{2, 3}, {3, 3, 3, 3, 3, 6}}), 0, "gradient");
  }

  /// Activations end as backward passes them, so a long chain does not hold all gradients at a time.
  void memory_is_freed_on_the_way_back() {
    Arena arena(Device::cpu());
    constexpr int64_t kBytes = 8 << 10;
    Tape tape(arena, true);
    Tensor x = tape.empty({1024}, DType::f64);
    std::fill_n(x.data<double>(), 1024, 1.0);
    x.set_differentiable(true);
    const Tensor buffer = tape.empty({1024}, DType::f64);
    tape.bind_grad(x, buffer);
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = scale(tape, y, 1.5);
    QCOMPARE(arena.used(), 22 * kBytes);
    const Tensor seed = tape.empty({1024}, DType::f64);
    std::fill_n(seed.data<double>(), 1024, 1.0);
    arena.reset_peak();
    const Tensor last = y;
    y = {};
    tape.backward({{last, seed}});
    QVERIFY2(arena.peak_used() <= 25 * kBytes, qPrintable(QString::number(arena.peak_used() / kBytes)));
    QCOMPARE(arena.used(), 4 * kBytes);  // x, its gradient, the last output and the seed
    QVERIFY(std::abs(buffer.data<double>()[17] - std::pow(1.5, 20)) < 1e-9);
  }

  /// The gradients of plain ops, of an output nobody used, and of what a later part takes from an earlier one.
  void segments_run_twice_when_asked_to() {
    for (bool recompute : {false, true}) {
      Tape tape(arena_, true);
      tape.set_recompute(recompute);
      const Tensor x = number(5), w = number(3), d_x = number(NAN), d_w = number(NAN);
      tape.bind_grad(x, d_x);
      tape.bind_grad(w, d_w);
      int runs = 0;
      bool missing = false;
      const std::vector<Tensor> first = tape.segment([&, x]() -> std::vector<Tensor> {
        ++runs;
        const auto [y, z] = twice(tape, sum(tape, scale(tape, x, 2), w), &missing);  // 2 and 3 of 2 x + w
        return {y, z, scale(tape, y, 10)};
      });
      const std::vector<Tensor> second = tape.segment(
          [&, h = first[0], z = first[1]]() -> std::vector<Tensor> { return {sum(tape, scale(tape, h, 7), sum(tape, z, h))}; });
      QCOMPARE(value(second[0]), 13.0 * (7 * 2 + 3 + 2));
      QCOMPARE(runs, 1);
      tape.backward(second[0]);
      QCOMPARE(runs, recompute ? 2 : 1);
      QCOMPARE(value(d_w), 19.0);
      QCOMPARE(value(d_x), 38.0);
    }
  }

  void segments_keep_what_goes_in_and_comes_out() {
    Arena arena(Device::cpu());
    constexpr int64_t kBytes = 8 << 10;
    Tape tape(arena, true);
    tape.set_recompute(true);
    Tensor x = tape.zeros({1024}, DType::f64);
    x.set_differentiable(true);
    const Tensor gradient = tape.zeros({1024}, DType::f64), seed = tape.zeros({1024}, DType::f64);
    tape.bind_grad(x, gradient);
    Tensor y = x;
    for (int part = 0; part < 5; ++part)
      y = tape.segment([&tape, y]() -> std::vector<Tensor> {
        Tensor h = y;
        for (int i = 0; i < 10; ++i) h = scale(tape, h, 1.5);
        return {h};
      })[0];
    QCOMPARE(arena.used(), (3 + 5) * kBytes);
    const Tensor last = y;
    y = {};
    tape.backward({{last, seed}});
    QVERIFY2(arena.peak_used() <= (3 + 5 + 13) * kBytes, qPrintable(QString::number(arena.peak_used() / kBytes)));
    QCOMPARE(arena.used(), 4 * kBytes);
  }

  void segments_of_nothing_differentiable_are_run_once() {
    Tape tape(arena_, true);
    tape.set_recompute(true);
    const Tensor y = tape.segment([&, x = number(2, false)]() -> std::vector<Tensor> { return {scale(tape, x, 3)}; })[0];
    QCOMPARE(value(y), 6.0);
    QVERIFY(!y.differentiable());
  }

  void same_steps_same_memory_on_cpu_and_plan() {
    int64_t peaks[2];
    for (int i : {0, 1}) {
      Arena arena(i ? Device::plan() : Device::cpu());
      Tape tape(arena, true);
      Tensor x = tape.zeros({1000}, DType::f64);
      x.set_differentiable(true);
      Tensor h = x;
      for (int layer = 0; layer < 5; ++layer) h = sum(tape, h, scale(tape, h, 2));
      tape.backward({{h, tape.zeros({1000}, DType::f64)}});
      peaks[i] = arena.peak_extent();
    }
    QCOMPARE(peaks[1], peaks[0]);
  }

  void costs_and_profile() {
    Tape tape(arena_, true);
    tape.set_profiling(true);
    const Tensor x = number(1);
    tape.backward(scale(tape, scale(tape, x, 2), 3));
    QCOMPARE(tape.cost().flops, 4.0);
    QCOMPARE(tape.cost().bytes, 64.0);
    QCOMPARE(tape.profile().at("scale").calls, int64_t{2});
    QCOMPARE(tape.profile().at("scale.backward").cost.flops, 2.0);
    QVERIFY(tape.profile().at("scale").seconds >= 0);
    tape.reset_cost();
    QCOMPARE(tape.cost().flops, 0.0);
  }

  /// On a device what its engine lacks is an error; a plan notes the first and goes on.
  void an_engine_may_refuse_an_op() {
    const auto lack = [](Tape& tape) { tape.run("lacking", {1, 0}, [] { QFAIL("it ran"); }); };
    Arena plan(Device::plan(Engine::cuda));
    Tape planned(plan, false);
    QVERIFY(planned.refusal().empty());
    lack(planned);
    planned.refuse("wide", "heads are 300 wide");
    QCOMPARE(planned.refusal(), std::string("[lacking] has no CUDA kernel"));
    Tape real(arena_, false);
    QVERIFY_THROWS_EXCEPTION(DeviceError, real.refuse("wide", "heads are 300 wide"));
    Arena cpu_plan(Device::plan());
    Tape on_cpu(cpu_plan, false);
    lack(on_cpu);
    QVERIFY(on_cpu.refusal().empty());
  }

  void binding_is_for_inputs() {
    Tape tape(arena_, true);
    const Tensor x = number(1), y = scale(tape, x, 2);
    QVERIFY_THROWS_EXCEPTION(std::logic_error, tape.bind_grad(y, number(0)));
    QVERIFY_THROWS_EXCEPTION(std::logic_error, tape.bind_grad(x, arena_.allocate({2}, DType::f64)));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TapeTest)
#include "tape_test.moc"

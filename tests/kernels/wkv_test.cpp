#include "kernels/ops/wkv/wkv.h"

#include <cmath>

#include "tests/support/op_checks.h"
#include "tests/support/read_check.h"

namespace saccade::test {

class WkvTest : public QObject {
  Q_OBJECT

  /// Inputs: r, k, v, w_raw, bonus, start.
  static Op op() {
    return [](Tape& tape, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Wkv out = wkv(tape, x[0], x[1], x[2], x[3], x[4], x[5]);
      return {out.y, out.state};
    };
  }
  static std::vector<Array> inputs(const Shape& shape, bool constant, double decay = -2) {
    const Shape channels{shape[2], shape[3]};
    std::vector<Array> x{random_array(shape, 1),         random_array(shape, 2),
                         random_array(shape, 3),         random_array(constant ? channels : shape, 4),
                         random_array(channels, 5, 0.5), random_array({shape[0], shape[2], shape[3], shape[3]}, 6)};
    for (double& w : x[3].values) w += decay;
    return x;
  }

  /// The recurrence as it is written down, in double. Returns y and the final state.
  static std::vector<Array> plain(const std::vector<Array>& x) {
    const Shape& shape = x[0].shape;
    const int64_t B = shape[0], T = shape[1], H = shape[2], N = shape[3];
    const bool constant = x[3].shape.rank() == 2;
    Array y{shape, std::vector<double>(x[0].values.size()), false}, state = x[5];
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t t = 0; t < T; ++t)
          for (int64_t c = 0; c < N; ++c) {
            const auto at = static_cast<size_t>(((b * T + t) * H + h) * N), channel = static_cast<size_t>(h * N + c);
            const auto key = at + static_cast<size_t>(c);
            const double decay = std::exp(-std::exp(x[3].values[constant ? channel : key]));
            for (int64_t i = 0; i < N; ++i) {
              const auto value = at + static_cast<size_t>(i);
              double& s = state.values[static_cast<size_t>(((b * H + h) * N + c) * N + i)];
              const double kv = x[1].values[key] * x[2].values[value];
              y.values[value] += x[0].values[key] * (s + x[4].values[channel] * kv);
              s = decay * s + kv;
            }
          }
    return {y, state};
  }

 private Q_SLOTS:
  void forward() {
    for (bool constant : {true, false})
      for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 37, 2, 5}, Shape{1, 131, 3, 32}, Shape{1, 40, 1, 64}}) {
        const std::vector<Array> x = inputs(shape, constant), expected = plain(x);
        const OpRun run = run_op(op(), x, DType::f64, Device::cpu());
        COMPARE_CLOSE(run.values[0], expected[0], 1e-12, "y");
        COMPARE_CLOSE(run.values[1], expected[1], 1e-12, "state");
      }
  }

  void gradients() {
    for (bool constant : {true, false})
      for (int64_t length : {1, 2, 19, 35}) CHECK_OP(op(), inputs({2, length, 2, 3}, constant));
  }

  void float_and_threads() {
    for (bool constant : {true, false})
      for (const Shape& shape : {Shape{2, 131, 2, 32}, Shape{1, 300, 3, 20}}) {
        const std::vector<Array> x = inputs(shape, constant);
        for (const QString& problem : {check_float(op(), x, 5e-5), check_threads(op(), x)})
          QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
  }

  /// Two pieces of a sequence, the second from the state that the first left, are the whole.
  void pieces() {
    const std::vector<Array> x = inputs({2, 40, 2, 8}, false);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto part = [&](size_t input, int64_t first, int64_t last) {
      Array a{{2, last - first, 2, 8}, {}, false};
      for (int64_t b = 0; b < 2; ++b)
        a.values.insert(a.values.end(), x[input].values.begin() + (b * 40 + first) * 16, x[input].values.begin() + (b * 40 + last) * 16);
      return to_tensor(a, DType::f64, arena);
    };
    const Tensor bonus = to_tensor(x[4], DType::f64, arena);
    const auto run = [&](int64_t first, int64_t last, const Tensor& start) {
      return wkv(tape, part(0, first, last), part(1, first, last), part(2, first, last), part(3, first, last), bonus, start);
    };
    const Wkv whole = run(0, 40, {}), head = run(0, 23, {}), tail = run(23, 40, head.state);
    COMPARE_CLOSE(to_array(tail.state), to_array(whole.state), 1e-13, "state");
    const std::vector<double> y = to_array(whole.y).values, last = to_array(tail.y).values;
    for (size_t i = 0; i < 17 * 16; ++i) QVERIFY(std::abs(y[23 * 16 + i] - last[i]) < 1e-12);
  }

  /// Decays of nothing and of everything, and raw decays beyond any exponential.
  void strong_decay_stays_finite() {
    for (bool constant : {true, false})
      for (DType dtype : {DType::f32, DType::f64}) {
        std::vector<Array> x = inputs({1, 70, 1, 8}, constant, 3);
        for (size_t i = 0; i < x[3].values.size(); i += 2) x[3].values[i] = i % 4 ? 200.0 : -200.0;
        const OpRun run = run_op(op(), x, dtype, Device::cpu());
        for (const Array& a : run.values) QVERIFY(std::all_of(a.values.begin(), a.values.end(), [](double v) { return std::isfinite(v); }));
        COMPARE_CLOSE(run.values[0], plain(x)[0], dtype == DType::f32 ? 2e-5 : 1e-12, "y");
      }
  }

  void weights_are_the_derivatives() {
    const auto weights = [](Tape& tape, const std::vector<Tensor>& x) { return std::vector{wkv_weights(tape, x[0], x[1], x[3], x[4], 1)}; };
    for (bool constant : {true, false})
      QVERIFY(worst_read_error(op(), weights, inputs({2, 21, 2, 4}, constant), 2, {0, 1, 2, 15, 16, 20}) < 1e-11);
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 3, 2, 8}, DType::f32), u = tape.empty({2, 8}, DType::f32), wrong = tape.empty({2, 7}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, wkv(tape, x, x, x, wrong, u));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, wkv(tape, x, x, x, x, wrong));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, wkv(tape, x, x, x, x, u, x));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::WkvTest)
#include "wkv_test.moc"

#include "kernels/ops/wkv7/wkv7.h"

#include <cmath>

#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "tests/support/op_checks.h"
#include "tests/support/read_check.h"

namespace saccade::test {

class Wkv7Test : public QObject {
  Q_OBJECT

  /// Inputs: r, log_w, k, v, a, b, start.
  static Op op() {
    return [](Tape& tape, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Wkv7 out = wkv7(tape, x[0], x[1], x[2], x[3], x[4], x[5], x[6]);
      return {out.y, out.state};
    };
  }
  /// Decays, removal and replacement keys as the model makes them: w in (0.5452, 1), a = −κ, b = κ ∘ rate with κ of unit length.
  static std::vector<Array> inputs(const Shape& shape, double decay = 0) {
    std::vector<Array> x;
    for (uint64_t i = 0; i < 6; ++i) x.push_back(random_array(shape, i + 1));
    x.push_back(random_array({shape[0], shape[2], shape[3], shape[3]}, 7));
    for (double& w : x[1].values) w = -0.606530660 / (1 + std::exp(-w - decay));
    const auto n = static_cast<size_t>(shape[3]);
    for (size_t row = 0; row < x[4].values.size(); row += n) {
      double squares = 0;
      for (size_t c = row; c < row + n; ++c) squares += x[4].values[c] * x[4].values[c];
      for (size_t c = row; c < row + n; ++c) {
        x[4].values[c] /= -std::sqrt(squares);
        x[5].values[c] = -x[4].values[c] / (1 + std::exp(-x[5].values[c]));
      }
    }
    return x;
  }

  /// The recurrence as it is written down, in double. Returns y and the final state.
  static std::vector<Array> plain(const std::vector<Array>& x) {
    const Shape& shape = x[0].shape;
    const int64_t B = shape[0], T = shape[1], H = shape[2], N = shape[3];
    Array y{shape, std::vector<double>(x[0].values.size()), false}, state = x[6];
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t t = 0; t < T; ++t)
          for (int64_t i = 0; i < N; ++i) {
            const int64_t at = ((b * T + t) * H + h) * N;
            const auto in = [&](size_t name, int64_t c) { return x[name].values[static_cast<size_t>(at + c)]; };
            const auto s = [&](int64_t c) -> double& { return state.values[static_cast<size_t>(((b * H + h) * N + c) * N + i)]; };
            double removed = 0;
            for (int64_t c = 0; c < N; ++c) removed += s(c) * in(4, c);
            for (int64_t c = 0; c < N; ++c) {
              s(c) = std::exp(in(1, c)) * s(c) + in(5, c) * removed + in(2, c) * in(3, i);
              y.values[static_cast<size_t>(at + i)] += in(0, c) * s(c);
            }
          }
    return {y, state};
  }

 private Q_SLOTS:
  void forward() {
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 37, 2, 5}, Shape{1, 131, 3, 32}, Shape{1, 40, 1, 64}}) {
      const std::vector<Array> x = inputs(shape), expected = plain(x);
      const OpRun run = run_op(op(), x, DType::f64, Device::cpu());
      COMPARE_CLOSE(run.values[0], expected[0], 1e-12, "y");
      COMPARE_CLOSE(run.values[1], expected[1], 1e-12, "state");
    }
  }

  void gradients() {
    for (int64_t length : {1, 2, 19, 35}) CHECK_OP(op(), inputs({2, length, 2, 3}));
  }

  void float_and_threads() {
    for (double decay : {-5.0, 0.0, 30.0})
      for (const Shape& shape : {Shape{2, 131, 2, 32}, Shape{1, 300, 3, 20}}) {
        const std::vector<Array> x = inputs(shape, decay);
        for (const QString& problem : {check_float(op(), x, 5e-5), check_threads(op(), x)})
          QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
  }

  /// Two pieces of a sequence, the second from the state that the first left, are the whole.
  void pieces() {
    const std::vector<Array> x = inputs({2, 40, 2, 8});
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto run = [&](int64_t first, int64_t last, const Tensor& start) {
      std::vector<Tensor> part;
      for (size_t i = 0; i < 6; ++i) {
        Array a{{2, last - first, 2, 8}, {}, false};
        for (int64_t b = 0; b < 2; ++b)
          a.values.insert(a.values.end(), x[i].values.begin() + (b * 40 + first) * 16, x[i].values.begin() + (b * 40 + last) * 16);
        part.push_back(to_tensor(a, DType::f64, arena));
      }
      return wkv7(tape, part[0], part[1], part[2], part[3], part[4], part[5], start);
    };
    const Wkv7 whole = run(0, 40, {}), head = run(0, 23, {}), tail = run(23, 40, head.state);
    COMPARE_CLOSE(to_array(tail.state), to_array(whole.state), 1e-13, "state");
    const std::vector<double> y = to_array(whole.y).values, last = to_array(tail.y).values;
    for (size_t i = 0; i < 17 * 16; ++i) QVERIFY(std::abs(y[23 * 16 + i] - last[i]) < 1e-12);
  }

  void weights_are_the_derivatives() {
    const auto weights = [](Tape& tape, const std::vector<Tensor>& x) {
      return std::vector{wkv7_weights(tape, x[0], x[1], x[2], x[4], x[5], 1)};
    };
    QVERIFY(worst_read_error(op(), weights, inputs({2, 21, 2, 4}), 3, {0, 1, 2, 15, 16, 20}) < 1e-11);
  }

  void gates() {
    const Op front = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Rwkv7Gates g = rwkv7_gates(t, x[0], x[1], x[2], x[3], x[4]);
      return {g.log_w, g.k, g.a, g.b};
    };
    const auto values = [](const Shape& shape, size_t count, const Shape& last) {
      std::vector<Array> x;
      for (uint64_t i = 0; i < count; ++i) x.push_back(random_array(shape, i + 1));
      x.push_back(random_array(last, 9));
      return x;
    };
    CHECK_OP(front, values({2, 3, 6}, 4, {6}));
    const std::vector<Array> many = values({2, 67, 20}, 4, {20});
    for (const QString& problem : {check_float(front, many), check_threads(front, many)}) QVERIFY2(problem.isEmpty(), qPrintable(problem));

    const Op back = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {rwkv7_output(t, x[0], x[1], x[2], x[3], x[4], x[5])};
    };
    CHECK_OP(back, values({2, 3, 6}, 5, {2, 3}));
    const std::vector<Array> more = values({2, 67, 20}, 5, {4, 5});
    for (const QString& problem : {check_float(back, more), check_threads(back, more)}) QVERIFY2(problem.isEmpty(), qPrintable(problem));

    const Op blend = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {blend_values(t, x[0], x[1], x[2])}; };
    CHECK_OP(blend, values({2, 67, 3}, 2, {2, 67, 3}));
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 3, 2, 8}, DType::f32), wrong = tape.empty({2, 3, 2, 7}, DType::f32),
                 c = tape.empty({2, 3, 16}, DType::f32), short_ = tape.empty({15}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, wkv7(tape, x, x, x, x, x, wrong));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, wkv7(tape, x, x, x, x, x, x, x));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, rwkv7_gates(tape, c, c, c, c, short_));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, blend_values(tape, c, c, x));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Wkv7Test)
#include "wkv7_test.moc"

#include "kernels/ops/token_shift/token_shift.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class TokenShiftTest : public QObject {
  Q_OBJECT

  /// Inputs: x, before (when `started`), weights.
  static Op op(ShiftWeight of, bool started) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      Tensor before = started ? x[1] : Tensor();
      before.set_differentiable(false);
      return token_shift(tape, x[0], before, {x.begin() + (started ? 2 : 1), x.end()}, of);
    };
  }
  /// Two blends shared by all tokens and one of every token's own.
  static std::vector<Array> inputs(int64_t batch, int64_t length, int64_t channels) {
    return {random_array({batch, length, channels}, 1), random_array({channels}, 2), random_array({batch, length, channels}, 3),
            random_array({channels}, 4)};
  }

 private Q_SLOTS:
  void gradients() {
    for (ShiftWeight of : {ShiftWeight::previous, ShiftWeight::current})
      for (int64_t length : {1, 5, 67}) CHECK_OP(op(of, false), inputs(2, length, 3));
  }

  void many_tokens() {
    const std::vector<Array> x = inputs(3, 131, 17);
    for (const QString& problem : {check_float(op(ShiftWeight::previous, false), x), check_threads(op(ShiftWeight::previous, false), x)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void values() {
    const Array x{{1, 3, 1}, {1, 2, 4}}, before{{1, 1}, {-1}}, weight{{1}, {0.25}};
    const auto run = [&](ShiftWeight of, bool started) {
      const std::vector<Array> all = started ? std::vector{x, before, weight} : std::vector{x, weight};
      Arena arena(Device::cpu());
      Tape tape(arena, false);
      std::vector<Tensor> tensors;
      for (const Array& a : all) tensors.push_back(to_tensor(a, DType::f64, arena));
      return to_array(op(of, started)(tape, tensors)[0]).values;
    };
    QCOMPARE(run(ShiftWeight::previous, false), (std::vector<double>{0.75, 1.75, 3.5}));
    QCOMPARE(run(ShiftWeight::current, false), (std::vector<double>{0.25, 1.25, 2.5}));
    QCOMPARE(run(ShiftWeight::previous, true), (std::vector<double>{0.5, 1.75, 3.5}));
    QCOMPARE(run(ShiftWeight::current, true), (std::vector<double>{-0.5, 1.25, 2.5}));
  }

  /// What follows the last token of a piece is what follows it in the whole.
  void pieces() {
    const Array x = random_array({2, 7, 4}, 1), w = random_array({4}, 2);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor whole = to_tensor(x, DType::f64, arena), weight = to_tensor(w, DType::f64, arena);
    const Array expected = to_array(token_shift(tape, whole, {}, {weight}, ShiftWeight::previous)[0]);
    Tensor before;
    for (int64_t t = 0; t < 7; ++t) {
      Array one{{2, 1, 4}, {}, false};
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t c = 0; c < 4; ++c) one.values.push_back(x.values[static_cast<size_t>((b * 7 + t) * 4 + c)]);
      const Tensor piece = to_tensor(one, DType::f64, arena);
      const Array y = to_array(token_shift(tape, piece, before, {weight}, ShiftWeight::previous)[0]);
      for (int64_t i = 0; i < 8; ++i)
        QCOMPARE(y.values[static_cast<size_t>(i)], expected.values[static_cast<size_t>((i / 4 * 7 + t) * 4 + i % 4)]);
      before = last_token(tape, piece);
    }
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 3, 8}, DType::f32), w = tape.empty({9}, DType::f32), ok = tape.empty({8}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, token_shift(tape, x, {}, {w}, ShiftWeight::previous));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, token_shift(tape, x, ok, {ok}, ShiftWeight::previous));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenShiftTest)
#include "token_shift_test.moc"

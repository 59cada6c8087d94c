#include "kernels/ops/causal_conv/causal_conv.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class CausalConvTest : public QObject {
  Q_OBJECT

  static Op op(Activation f) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      return std::vector<Tensor>{causal_conv(tape, x[0], x[1], x.size() > 2 ? x[2] : Tensor(), f)};
    };
  }
  static std::vector<Array> inputs(int64_t batch, int64_t length, int64_t channels, int64_t taps, bool bias) {
    std::vector<Array> x{random_array({batch, length, channels}, 1), random_array({channels, taps}, 2, 0.5)};
    if (bias) x.push_back(random_array({channels}, 3));
    return x;
  }

 private Q_SLOTS:
  void everything_of_an_op() {
    for (const auto& [length, taps] : {std::pair<int64_t, int64_t>{1, 4}, {2, 4}, {37, 3}, {64, 4}, {131, 4}, {5, 1}})
      for (bool bias : {false, true})
        for (Activation f : {Activation::none, Activation::silu}) CHECK_OP(op(f), inputs(2, length, 5, taps, bias));
  }

  /// Pieces of 1, 2 and more tokens, one after the other, give what the whole sequence gives.
  void pieces_are_the_whole() {
    const int64_t length = 23, taps = 4;
    const std::vector<Array> x = inputs(2, length, 3, taps, true);
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor weight = to_tensor(x[1], DType::f64, arena), bias = to_tensor(x[2], DType::f64, arena);
    const Array whole = to_array(causal_conv(tape, to_tensor(x[0], DType::f64, arena), weight, bias, Activation::silu));
    const Tensor history = tape.zeros({2, taps - 1, 3}, DType::f64);
    int64_t at = 0;
    for (int64_t size : {1, 1, 2, 7, 1, 3, 8}) {
      Array piece{{2, size, 3}, {}, false}, expected = piece;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = at * 3; i < (at + size) * 3; ++i) {
          piece.values.push_back(x[0].values[static_cast<size_t>(b * length * 3 + i)]);
          expected.values.push_back(whole.values[static_cast<size_t>(b * length * 3 + i)]);
        }
      const Tensor y = causal_conv_next(tape, to_tensor(piece, DType::f64, arena), weight, bias, Activation::silu, history);
      COMPARE_CLOSE(to_array(y), expected, 1e-14, QString("tokens from %1").arg(at));
      at += size;
    }
    QCOMPARE(at, length);
    Arena::set_poison(false);
  }

  void wrong_shapes_are_named() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = tape.zeros({1, 4, 3}, DType::f32), weight = tape.zeros({2, 4}, DType::f32);
    try {
      causal_conv(tape, x, weight, {}, Activation::none);
      QFAIL("it is accepted");
    } catch (const std::invalid_argument& error) {
      QVERIFY(QString(error.what()).startsWith("[causal_conv] x is [1, 4, 3], weight is [2, 4]"));
    }
  }

  void channels_in_pieces() {
    for (int64_t taps : {3, 7})
      CHECK_OP(
          [](Tape& tape, const std::vector<Tensor>& x) {
            return causal_conv_pieces(tape, x[0], x[1], x[2], Activation::silu, {2, 1, 4});
          },
          {random_array({2, 9, 7}, 1), random_array({7, taps}, 2), random_array({7}, 3)});
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CausalConvTest)
#include "causal_conv_test.moc"

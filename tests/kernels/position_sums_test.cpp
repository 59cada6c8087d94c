#include "kernels/ops/position_sums/position_sums.h"

#include <QtTest>

#include "tests/support/op_checks.h"

namespace saccade::test {

class PositionSumsTest : public QObject {
  Q_OBJECT

  static std::vector<double> sums_of(const std::vector<Array>& pieces, DType dtype, int64_t length) {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor sums = tape.zeros({length}, DType::f64);
    for (const Array& piece : pieces) add_position_sums(tape, to_tensor(piece, dtype, arena), sums);
    return to_array(sums).values;
  }

 private Q_SLOTS:
  void columns_are_summed() {
    const Array x{{2, 3}, {1, 2, 3, 10, 20, 30}, false};
    QCOMPARE(sums_of({x}, DType::f32, 3), (std::vector<double>{11, 22, 33}));
    QCOMPARE(sums_of({x, x}, DType::f64, 3), (std::vector<double>{22, 44, 66}));
  }

  void pieces_add_up_to_the_bits_of_the_whole() {
    const int64_t length = 7;
    const Array whole = random_array({11, length}, 1);
    const auto part = [&](int64_t begin, int64_t end) {
      return Array{{(end - begin) * length}, {whole.values.begin() + begin * length, whole.values.begin() + end * length}, false};
    };
    QCOMPARE(sums_of({part(0, 4), part(4, 5), part(5, 11)}, DType::f32, length), sums_of({whole}, DType::f32, length));
  }

  void refuses_what_does_not_divide() { QVERIFY_THROWS_EXCEPTION(std::invalid_argument, sums_of({random_array({8}, 1)}, DType::f32, 3)); }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::PositionSumsTest)
#include "position_sums_test.moc"

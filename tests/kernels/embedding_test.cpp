#include "kernels/ops/embedding/embedding.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class EmbeddingTest : public QObject {
  Q_OBJECT

  static Array tokens(const Shape& shape, int vocabulary) {
    Array array{shape, {}, true};
    for (int64_t i = 0; i < shape.size(); ++i) array.values.push_back(static_cast<double>((i * i + 3 * i) % vocabulary));
    return array;
  }

 private Q_SLOTS:
  void embedding_data() {
    QTest::addColumn<int>("vocabulary");
    QTest::addColumn<int>("width");
    QTest::addColumn<int>("length");
    QTest::newRow("one") << 1 << 1 << 1;
    QTest::newRow("primes") << 11 << 7 << 13;
    QTest::newRow("more tokens than a block") << 5 << 3 << 97;
  }
  void embedding() {
    QFETCH(int, vocabulary);
    QFETCH(int, width);
    QFETCH(int, length);
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::embedding(t, x[0], x[1])}; },
             {random_array({vocabulary, width}, 1), tokens({2, length}, vocabulary)});
  }

  void values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor table = to_tensor({{3, 2}, {1, 2, 3, 4, 5, 6}}, DType::f32, arena),
                 at = to_tensor({{1, 3}, {2, 0, 2}, true}, DType::f32, arena);
    COMPARE_CLOSE(to_array(saccade::embedding(tape, table, at)), (Array{{1, 3, 2}, {5, 6, 1, 2, 5, 6}}), 0, "y");
  }

  void token_outside() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor table = to_tensor(random_array({3, 2}, 1), DType::f32, arena);
    for (double bad : {-1.0, 3.0}) {
      const Tensor at = to_tensor({{1, 2}, {0, bad}, true}, DType::f32, arena);
      QVERIFY_THROWS_EXCEPTION(DataError, saccade::embedding(tape, table, at));
    }
  }

  void positions_data() {
    QTest::addColumn<int>("length");
    QTest::newRow("one") << 1;
    QTest::newRow("shorter than the table") << 37;
    QTest::newRow("whole table") << 67;
  }
  void positions() {
    QFETCH(int, length);
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {add_positions(t, x[0], x[1])}; },
             {random_array({3, length, 5}, 1), random_array({67, 5}, 2)});
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor table = tape.empty({4, 8}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::embedding(tape, table, tape.empty({2, 3}, DType::f32)));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, add_positions(tape, tape.empty({2, 5, 8}, DType::f32), table));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, add_positions(tape, tape.empty({2, 4, 9}, DType::f32), table));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::EmbeddingTest)
#include "embedding_test.moc"

#include "kernels/ops/read_statistics/read_statistics.h"

#include <QtTest>
#include <cmath>

#include "kernels/engine/parallel.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

namespace {

using Op = Tensor (*)(Tape&, const Tensor&, int64_t);

std::vector<double> values_of(Op op, const Array& weights, int64_t near, DType dtype = DType::f64) {
  Arena arena(Device::cpu());
  Tape tape(arena, false);
  return to_array(op(tape, to_tensor(weights, dtype, arena), near)).values;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); }

}  // namespace

class ReadStatisticsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sums_of_two_heads_by_hand() {
    // Entries behind the diagonal (9) are not looked at.
    const Array w{{2, 3, 3}, {1, 9, 9, 0.25, 0.75, 9, 0.5, 0.25, 0.25, /**/ 2, 9, 9, 0, 1, 9, -1, 0, 3}, false};
    QCOMPARE(values_of(read_sums, w, 2), (std::vector<double>{0.25 + 1 + 0.25, 0.5, -2, -1}));
    QCOMPARE(values_of(read_sums, w, 1), (std::vector<double>{1.5, 0.25 + 0.75, -2, -1}));
    QCOMPARE(values_of(read_sums, w, 2, DType::f32), values_of(read_sums, w, 2));
  }

  void reads_of_queries_by_hand() {
    const Array w{{1, 3, 3}, {0, 9, 9, -3, 1, 9, 1, -1, 2}, false};
    const std::vector<double> reads = values_of(query_reads, w, 2);
    for (int i = 0; i < 3; ++i) QVERIFY(std::isnan(reads[static_cast<size_t>(i)]));  // query 0 reads nothing
    QVERIFY(close(reads[3], -0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
    QVERIFY(close(reads[4], 0.75));
    QVERIFY(close(reads[5], 0));
    QVERIFY(close(reads[6], 1.5 * std::log(2.0)));
    QVERIFY(close(reads[7], 0.25 * 2 + 0.25));
    QVERIFY(close(reads[8], 0.25));
  }

  void uniform_reads_have_the_largest_entropy() {
    const int64_t length = 37;
    Array w{{1, length, length}, std::vector<double>(static_cast<size_t>(length * length), 0.3), false};
    const std::vector<double> reads = values_of(query_reads, w, length);
    for (int64_t t = 0; t < length; ++t) {
      QVERIFY(close(reads[static_cast<size_t>(3 * t)], std::log(static_cast<double>(t + 1))));
      QVERIFY(close(reads[static_cast<size_t>(3 * t + 1)], static_cast<double>(t) / 2));
    }
  }

  void same_bits_on_any_number_of_threads() {
    const Array w = random_array({5, 41, 41}, 3);
    const int before = thread_count();
    set_thread_count(1);
    const auto sums = values_of(read_sums, w, 16), reads = values_of(query_reads, w, 16);
    for (const int threads : {2, 3}) {
      set_thread_count(threads);
      QCOMPARE(values_of(read_sums, w, 16), sums);
      QCOMPARE(values_of(query_reads, w, 16), reads);
    }
    set_thread_count(before);
  }

  void refuses_other_shapes() {
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, values_of(read_sums, random_array({3, 4, 5}, 1), 2));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, values_of(query_reads, random_array({4, 4}, 1), 2));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ReadStatisticsTest)
#include "read_statistics_test.moc"

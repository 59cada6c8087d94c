#include "kernels/engine/random.h"

#include <QtTest>
#include <vector>

namespace saccade::test {

class RandomTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// The three vectors that Random123 (Salmon et al. 2011) publishes for philox4x32-10.
  void known_vectors() {
    using Counter = std::array<uint32_t, 4>;
    QCOMPARE(Random::philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    QCOMPARE(Random::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    QCOMPARE(Random::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
             (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  }

  void depends_on_seed_stream_and_index_only() {
    const Random a(1, "weights");
    QCOMPARE(a.bits(5), Random(1, "weights").bits(5));
    QVERIFY(a.bits(5) != a.bits(6));
    QVERIFY(a.bits(5) != Random(2, "weights").bits(5));
    QVERIFY(a.bits(5) != Random(1, "data").bits(5));
    QVERIFY(a.bits(5) != Random(1ull << 32, "weights").bits(5));
    QVERIFY(a.bits(5) != a.bits(5 + (1ull << 32)));
  }

  /// Moments of 200 000 numbers within five standard errors.
  void normal_distribution() {
    const Random random(3, "test");
    constexpr int kCount = 200000;
    double sum = 0, squares = 0, fourth = 0;
    int beyond_two = 0;
    for (uint64_t i = 0; i < kCount; ++i) {
      const double x = random.normal(i);
      QVERIFY(std::isfinite(x));
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
      beyond_two += std::abs(x) > 2;
    }
    const double error = 5 / std::sqrt(double{kCount});
    QVERIFY(std::abs(sum / kCount) < error);
    QVERIFY(std::abs(squares / kCount - 1) < error * std::sqrt(2.0));
    QVERIFY(std::abs(fourth / kCount - 3) < error * std::sqrt(96.0));
    QVERIFY(std::abs(beyond_two / double{kCount} - 0.04550026) < error * 0.21);
  }

  void uniform_distribution() {
    const Random random(4, "test");
    constexpr uint64_t kCount = 100000, kBins = 97;
    std::vector<int> bins(kBins), below(kBins);
    for (uint64_t i = 0; i < kCount; ++i) {
      const double u = random.uniform(i);
      QVERIFY(u >= 0 && u < 1);
      ++bins[static_cast<size_t>(u * kBins)];
      const uint64_t n = random.below(kBins, i);
      QVERIFY(n < kBins);
      ++below[n];
    }
    for (const std::vector<int>& counts : {bins, below}) {
      double chi2 = 0;
      for (int count : counts) chi2 += (count - double{kCount} / kBins) * (count - double{kCount} / kBins) / (double{kCount} / kBins);
      QVERIFY(chi2 > 40 && chi2 < 180);  // 96 degrees of freedom: six standard deviations
    }
    QCOMPARE(random.below(1, 7), uint64_t{0});
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RandomTest)
#include "random_test.moc"

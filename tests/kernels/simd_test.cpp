#include "kernels/cpu/simd.h"

#include <QtTest>
#include <limits>
#include <vector>

namespace saccade::test {
namespace {

// Through the entry points, so that the version which this processor gets is the one tested.
SACCADE_SIMD void exponentials(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = fast_exp(x[i]);
}
SACCADE_SIMD void normals(const float* x, float* cdf, float* pdf, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto normal = fast_normal(x[i]);
    cdf[i] = normal.cdf;
    pdf[i] = normal.pdf;
  }
}
SACCADE_SIMD void error_functions(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = fast_erf(x[i]);
}
SACCADE_SIMD float sum(const float* x, int64_t n) {
  return lane_sum<float>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i]; });
}

std::vector<float> grid(double from, double to, int count) {
  std::vector<float> x;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(from + (to - from) * i / count));
  return x;
}

}  // namespace

class SimdTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void exponential() {
    const std::vector<float> x = grid(-87, 88, 1000003);
    std::vector<float> y(x.size());
    exponentials(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(y[i] / std::exp(double{x[i]}) - 1));
    QVERIFY2(worst < 2e-7, qPrintable(QString::number(worst)));
  }

  void exponential_at_the_edges() {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{0, -0.0f, -infinity, -88, -1000, infinity, 1000, std::nanf(""), 1e-30f};
    std::vector<float> y(x.size());
    exponentials(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i : {0u, 1u, 8u}) QCOMPARE(y[i], 1.0f);
    for (size_t i : {2u, 3u, 4u}) QCOMPARE(y[i], 0.0f);
    for (size_t i : {5u, 6u}) QVERIFY(std::isfinite(y[i]) && y[i] > 1.6e38f);
    QVERIFY(std::isnan(y[7]));
  }

  /// Value and derivative of gelu as well: this is what the bounds are for.
  void normal_distribution() {
    const std::vector<float> x = grid(-12, 12, 1000003);
    std::vector<float> cdf(x.size()), pdf(x.size()), erf(x.size());
    normals(x.data(), cdf.data(), pdf.data(), static_cast<int64_t>(x.size()));
    error_functions(x.data(), erf.data(), static_cast<int64_t>(x.size()));
    double cdf_error = 0, pdf_error = 0, erf_error = 0, gelu_error = 0, slope_error = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const Normal<double> exact = fast_normal(double{x[i]});
      cdf_error = std::max(cdf_error, std::abs(cdf[i] - exact.cdf));
      pdf_error = std::max(pdf_error, std::abs(pdf[i] - exact.pdf));
      erf_error = std::max(erf_error, std::abs(erf[i] - std::erf(double{x[i]})));
      gelu_error = std::max(gelu_error, std::abs(x[i] * cdf[i] - double{x[i]} * exact.cdf) / std::max(1.0, std::abs(double{x[i]})));
      slope_error = std::max(slope_error, std::abs(cdf[i] + x[i] * pdf[i] - exact.cdf - double{x[i]} * exact.pdf));
    }
    QVERIFY2(cdf_error < 3e-7, qPrintable(QString::number(cdf_error)));
    QVERIFY2(pdf_error < 3e-7, qPrintable(QString::number(pdf_error)));
    QVERIFY2(erf_error < 6e-7, qPrintable(QString::number(erf_error)));
    QVERIFY2(gelu_error < 4e-7, qPrintable(QString::number(gelu_error)));
    QVERIFY2(slope_error < 5e-7, qPrintable(QString::number(slope_error)));
  }

  void normal_in_double_is_the_library() {
    for (double x : {-8.0, -1.5, 0.0, 0.3, 6.0}) {
      QVERIFY(std::abs(fast_normal(x).cdf - 0.5 * std::erfc(-x / std::sqrt(2.0))) <= 2e-15);
      QVERIFY(std::abs(fast_normal(x).pdf - std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0))) <= 1e-15);
    }
  }

  void normal_at_the_edges() {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{-infinity, infinity, std::nanf(""), 0};
    std::vector<float> cdf(4), pdf(4);
    normals(x.data(), cdf.data(), pdf.data(), 4);
    QCOMPARE(cdf[0], 0.0f);
    QCOMPARE(cdf[1], 1.0f);
    QCOMPARE(pdf[0], 0.0f);
    QVERIFY(std::isnan(cdf[2]) && std::isnan(pdf[2]));
    QVERIFY(std::abs(cdf[3] - 0.5f) < 1e-7f);
  }

  void square_roots_and_maxima() {
    double worst = 0;
    for (float x = 1e-30f; x < 1e30f; x *= 1.0173f) worst = std::max(worst, std::abs(fast_sqrt(x) / std::sqrt(double{x}) - 1));
    QVERIFY2(worst < 3e-7, qPrintable(QString::number(worst)));
    QCOMPARE(fast_sqrt(0.0f), 0.0f);
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> ascending{-infinity, -1e30f, -2, -1, -1e-40f, 0, 1e-40f, 1, 1.5f, 1e30f, infinity};
    for (size_t i = 0; i < ascending.size(); ++i)
      for (size_t j = 0; j < ascending.size(); ++j) QCOMPARE(fast_max(ascending[i], ascending[j]), ascending[std::max(i, j)]);
  }

  void selections() {
    QCOMPARE(select(true, 1.0f, 2.0f), 1.0f);
    QCOMPARE(select(false, 1.0f, std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
    QVERIFY(is_positive(1e-40f) && !is_positive(0.0f) && !is_positive(-0.0f) && !is_positive(-1.0f) && !is_positive(-1.0));
  }

  void lane_sums() {
    for (int n : {0, 1, 7, 15, 16, 17, 31, 37, 1000}) {
      std::vector<float> x;
      for (int i = 0; i < n; ++i) x.push_back(static_cast<float>(i + 1));
      QCOMPARE(sum(x.data(), n), static_cast<float>(n * (n + 1) / 2));
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SimdTest)
#include "simd_test.moc"

#include "kernels/ops/heads/heads.h"

#include <cmath>

#include "tests/support/op_checks.h"

namespace saccade::test {

class HeadsTest : public QObject {
  Q_OBJECT

  static Op op(const HeadOptions& options) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      return std::vector<Tensor>{prepare_heads(tape, x[0], options.norm == QkNorm::rms ? x[1] : Tensor(), options)};
    };
  }
  static std::vector<Array> inputs(const Shape& shape, const HeadOptions& options) {
    std::vector<Array> all{random_array(shape, 1)};
    if (options.norm == QkNorm::rms) all.push_back(random_array({shape[3]}, 2));
    return all;
  }
  static const std::vector<HeadOptions>& variants() {
    static const std::vector<HeadOptions> all{
        {QkNorm::l2}, {QkNorm::rms}, {QkNorm::none, 10000}, {QkNorm::l2, 100, {5}}, {QkNorm::rms, 1e6}};
    return all;
  }

 private Q_SLOTS:
  void small() {
    for (const HeadOptions& options : variants()) {
      CHECK_OP(op(options), inputs({2, 5, 3, 6}, options));
      CHECK_OP(op(options), inputs({1, 1, 1, 4}, options));
    }
  }
  void blocks() {
    for (const HeadOptions& options : variants()) {
      const std::vector<Array> x = inputs({2, 131, 2, 22}, options);
      for (const QString& problem : {check_float(op(options), x), check_threads(op(options), x), check_plan(op(options), x),
                                     check_gradient(op(options), inputs({1, 67, 1, 2}, options))})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }

  /// Against the formulas of the header, far from position 0.
  void values() {
    const int64_t first = 99000, width = 10;
    const Array x = random_array({1, 150, 1, width}, 3), gain = random_array({width}, 4);
    const Array y = run_op(op({QkNorm::rms, 10000, {first}}), {x, gain}, DType::f64, Device::cpu()).values[0];
    Array expected = y;
    for (int64_t t = 0; t < 150; ++t) {
      const double* row = x.values.data() + t * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += row[i] * row[i];
      const auto normed = [&](int64_t i) { return row[i] / std::sqrt(squares / 10 + 1e-5) * gain.values[static_cast<size_t>(i)]; };
      for (int64_t i = 0; i < 5; ++i) {
        const double angle = static_cast<double>(first + t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / 10);
        expected.values[static_cast<size_t>(t * width + i)] = normed(i) * std::cos(angle) - normed(i + 5) * std::sin(angle);
        expected.values[static_cast<size_t>(t * width + i + 5)] = normed(i) * std::sin(angle) + normed(i + 5) * std::cos(angle);
      }
    }
    COMPARE_CLOSE(y, expected, 1e-11, "y");
  }

  void nothing_to_do() {
    Arena arena(Device::cpu());
    Tape tape(arena, true);
    const Tensor x = tape.zeros({1, 2, 1, 3}, DType::f32);
    QCOMPARE(prepare_heads(tape, x, {}, {}).id(), x.id());
  }

  void errors() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = tape.zeros({1, 2, 1, 3}, DType::f32), gain = tape.zeros({4}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(UsageError, prepare_heads(tape, x, {}, {QkNorm::none, 10000}));
    QVERIFY_THROWS_EXCEPTION(UsageError, prepare_heads(tape, x, {}, {QkNorm::rms}));
    QVERIFY_THROWS_EXCEPTION(UsageError, prepare_heads(tape, x, gain, {QkNorm::rms}));
    QVERIFY_THROWS_EXCEPTION(UsageError, prepare_heads(tape, x.reshape({2, 3}), {}, {QkNorm::l2}));
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_qk_norm("layer"));
    QCOMPARE(parse_qk_norm("rms"), QkNorm::rms);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::HeadsTest)
#include "heads_test.moc"

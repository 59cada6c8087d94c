#include "kernels/ops/top1_element/top1_element.h"

#include "tests/kernels/plain_attention.h"

namespace saccade::test {

class Top1ElementTest : public QObject {
  Q_OBJECT

  static Op op(const ScoreOptions& options) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      const Top1Element a = top1_element(tape, x[0], x[1], x[2], options, true);
      return std::vector<Tensor>{a.o, a.selected, a.lse, a.entropy};
    };
  }
  /// The gradients that the straight-through form has by definition: those of soft attention for q and k.
  static Op soft(const ScoreOptions& options) {
    return [=](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{attention(tape, x[0], x[1], x[2], options).o}; };
  }
  static const std::vector<ScoreOptions>& variants() {
    static const std::vector<ScoreOptions> all{{0.5, 0, false}, {2.0, 0, true}, {0.5, 1, false}, {0.5, 66, true}};
    return all;
  }

 private Q_SLOTS:
  void forward() {
    for (const ScoreOptions& score : variants())
      for (int64_t length : {1, 13, 64, 131, 300}) {
        const std::vector<Array> x = random_heads(2, length, 2, 5);
        const Array s = plain_scores(x[0], x[1], 2, score);
        const PlainAttention expected = plain_attention(s, x[2]);
        const OpRun run = run_op(op(score), x, DType::f64, Device::cpu());
        for (int64_t line = 0; line < 4; ++line)
          for (int64_t t = 0; t < length; ++t) {
            const auto row = s.values.begin() + (line * length + t) * length;
            const auto best = std::max_element(row, row + length) - row;
            QCOMPARE(run.values[1].values[static_cast<size_t>(line * length + t)], static_cast<double>(best));
            for (int64_t i = 0; i < 5; ++i) QCOMPARE(at(run.values[0], line / 2, t, line % 2, i), at(x[2], line / 2, best, line % 2, i));
          }
        COMPARE_CLOSE(run.values[2], expected.lse, 1e-12, "lse");
        COMPARE_CLOSE(run.values[3], expected.entropy, 1e-11, "entropy");
      }
  }

  void gradients() {
    for (const ScoreOptions& score : variants()) {
      if (score.window == 1) continue;
      const std::vector<Array> x = random_heads(2, 71, 2, 3);
      const OpRun hard = run_op(op(score), x, DType::f64, Device::cpu()), through = run_op(soft(score), x, DType::f64, Device::cpu());
      COMPARE_CLOSE(hard.values[4], through.values[1], 1e-12, "gradient of q");
      COMPARE_CLOSE(hard.values[5], through.values[2], 1e-12, "gradient of k");
      Array dv{x[2].shape, std::vector<double>(x[2].values.size()), false};
      const Array d_o = random_array(x[2].shape, 1000);
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t t = 0; t < 71; ++t) {
            const auto j = static_cast<int64_t>(hard.values[1].values[static_cast<size_t>((b * 2 + h) * 71 + t)]);
            for (int64_t i = 0; i < 3; ++i) dv.values[static_cast<size_t>(((b * 71 + j) * 2 + h) * 3 + i)] += at(d_o, b, t, h, i);
          }
      COMPARE_CLOSE(hard.values[6], dv, 1e-12, "gradient of v");
    }
  }

  void ties_take_the_smaller_position() {
    std::vector<Array> x = random_heads(1, 150, 1, 4);
    std::fill(x[1].values.begin(), x[1].values.end(), 1.0);
    for (DType dtype : {DType::f32, DType::f64})
      for (int64_t window : {0, 70}) {
        const Array selected = run_op(op({1, window, false}), x, dtype, Device::cpu()).values[1];
        for (int64_t t = 0; t < 150; ++t)
          QCOMPARE(selected.values[static_cast<size_t>(t)], static_cast<double>(window ? std::max<int64_t>(0, t - window + 1) : 0));
      }
  }

  void shared_keys() {
    std::vector<Array> x = random_heads(3, 20, 2, 3);
    x[1] = random_array({1, 20, 2, 3}, 8);
    const OpRun hard = run_op(op({}), x, DType::f64, Device::cpu()), through = run_op(soft({}), x, DType::f64, Device::cpu());
    COMPARE_CLOSE(hard.values[5], through.values[2], 1e-12, "gradient of shared k");
  }

  void everywhere_the_same() {
    for (const ScoreOptions& score : variants()) {
      for (const QString& problem :
           {check_threads(op(score), random_heads(1, 139, 2, 4)), check_plan(op(score), random_heads(2, 70, 2, 4))})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
      if (score.window == 1) continue;  // gradients of q and k are zero by mathematics
      const QString problem = check_float(op(score), random_heads(1, 97, 2, 8));
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Top1ElementTest)
#include "top1_element_test.moc"

#include "kernels/ops/delta_rule/delta_rule.h"

#include "kernels/ops/log_decay/log_decay.h"
#include "tests/support/op_checks.h"
#include "tests/support/read_check.h"

namespace saccade::test {

class DeltaRuleTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kHeads = 2, kKeys = 5, kValues = 3;

  /// q, k (of length about 1), v, beta in (0, 1), g ≤ 0 when gated.
  static std::vector<Array> inputs(int64_t batch, int64_t length, bool gated, double decay = 0.3) {
    std::vector<Array> x{random_array({batch, length, kHeads, kKeys}, 1, 0.4), random_array({batch, length, kHeads, kKeys}, 2, 0.4),
                         random_array({batch, length, kHeads, kValues}, 3), random_array({batch, length, kHeads}, 4)};
    for (double& v : x[3].values) v = 1 / (1 + std::exp(-v));
    if (gated) x.push_back(random_array({batch, length, kHeads}, 5, decay));
    for (double& v : x.back().values)
      if (gated) v = -std::abs(v);
    return x;
  }
  static DeltaRule arguments(const std::vector<Tensor>& x, bool gated) {
    DeltaRule in{.q = x[0], .k = x[1], .v = x[2], .beta = x[3], .scale = 0.7};
    if (gated) in.g = x[4];
    return in;
  }
  static Op op(bool gated, bool state) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      DeltaRule in = arguments(x, gated);
      if (state) in.state = {x.back(), true, false};
      const DeltaRuleOutput out = delta_rule(tape, in);
      return state ? std::vector<Tensor>{out.o, out.end} : std::vector<Tensor>{out.o};
    };
  }

 private Q_SLOTS:
  void everything_of_an_op() {
    for (int64_t length : {1, 19, 67})
      for (bool gated : {false, true}) {
        const bool state = length != 67;  // without one, the decay's gradient at a single token is zero by mathematics
        std::vector<Array> x = inputs(1, length, gated);
        if (state) x.push_back(random_array({1, kHeads, kKeys, kValues}, 10));
        CHECK_OP(op(gated, state), x, 5e-5);
      }
  }

  void several_chunks() {
    for (int64_t length : {32, 131, 2048})
      for (bool gated : {false, true})
        for (const QString& problem :
             {check_float(op(gated, false), inputs(2, length, gated), 5e-5), check_threads(op(gated, false), inputs(2, length, gated)),
              check_plan(op(gated, false), inputs(2, length, gated))})
          QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// All keys nearly the same and β near 1: the case in which inverting the triangle by powers fails.
  void correlated_keys_and_strong_decay_stay_close() {
    std::vector<Array> similar = inputs(1, 200, false);
    for (size_t i = 0; i < similar[1].values.size(); ++i) similar[1].values[i] = 1 / std::sqrt(double(kKeys)) + 0.01 * similar[1].values[i];
    for (double& v : similar[3].values) v = 0.9 + 0.1 * v;
    QString problem = check_float(op(false, false), similar, 5e-5);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
    problem = check_float(op(true, false), inputs(1, 200, true, 12), 5e-5);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// β in (0, 2), eigenvalues in (−1, 1): the recurrence written out, in double, and the float version beside it.
  void beta_above_one() {
    constexpr int64_t kLength = 131;
    for (const bool gated : {false, true}) {
      std::vector<Array> x = inputs(1, kLength, gated);
      for (double& beta : x[3].values) beta *= 2;
      for (size_t row = 0; row < static_cast<size_t>(kLength * kHeads); ++row) {  // keys of length 1
        double squares = 0;
        for (size_t i = 0; i < kKeys; ++i) squares += x[1].values[row * kKeys + i] * x[1].values[row * kKeys + i];
        for (size_t i = 0; i < kKeys; ++i) x[1].values[row * kKeys + i] /= std::sqrt(squares);
      }
      const QString problem = check_float(op(gated, false), x, 5e-5);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
      const Array o = run_op(op(gated, false), x, DType::f64, Device::cpu()).values.front();
      double state[kHeads][kKeys][kValues] = {};
      for (size_t row = 0; row < static_cast<size_t>(kLength * kHeads); ++row) {
        auto& s = state[row % kHeads];
        const double *q = &x[0].values[row * kKeys], *k = &x[1].values[row * kKeys], *v = &x[2].values[row * kValues];
        for (size_t j = 0; j < kValues; ++j) {
          double read = 0, out = 0;
          for (size_t i = 0; i < kKeys; ++i) read += k[i] * (s[i][j] *= gated ? std::exp(x[4].values[row]) : 1);
          for (size_t i = 0; i < kKeys; ++i) out += q[i] * (s[i][j] += k[i] * x[3].values[row] * (v[j] - read));
          QVERIFY(std::abs(o.values[row * kValues + j] - 0.7 * out) < 1e-12);
        }
      }
    }
  }

  void weights_are_the_derivatives() {
    for (bool gated : {false, true}) {
      const auto run = [&](Tape& tape, const std::vector<Tensor>& x) { return std::vector{delta_rule(tape, arguments(x, gated)).o}; };
      const auto weights = [&](Tape& tape, const std::vector<Tensor>& x) {
        return std::vector{delta_rule_weights(tape, arguments(x, gated), 1)};
      };
      QVERIFY(worst_read_error(run, weights, inputs(2, 70, gated), 2, {0, 13, 31, 32, 69}) < 1e-10);
    }
  }

  void decay_of_the_gate() {
    CHECK_OP([](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{log_decay(tape, x[0], x[1], x[2])}; },
             {random_array({2, 7, 5}, 1, 3), random_array({5}, 2), random_array({5}, 3)}, 5e-5);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DeltaRuleTest)
#include "delta_rule_test.moc"

#include "kernels/ops/mamba2/mamba2_ssd.h"

#include "tests/support/op_checks.h"
#include "tests/support/read_check.h"

namespace saccade::test {

class Mamba2SsdTest : public QObject {
  Q_OBJECT

  enum Decay { full, one, none };
  static constexpr int64_t kHeads = 4, kWidth = 3, kKeys = 5;

  static Mamba2Ssd arguments(const std::vector<Tensor>& x, Decay decay) {
    Mamba2Ssd in{.x = x[0], .dt = x[1], .b = x[2], .c = x[3], .skip = x[4], .dt_bias = x[5]};
    if (decay != none) in.a_log = x[6];
    if (decay == one) in.shared_dt = x[7], in.shared_bias = x[8];
    return in;
  }
  static std::vector<Array> inputs(int64_t batch, int64_t length, int64_t groups, Decay decay) {
    std::vector<Array> x{random_array({batch, length, kHeads, kWidth}, 1),
                         random_array({batch, length, kHeads}, 2),
                         random_array({batch, length, groups, kKeys}, 3),
                         random_array({batch, length, groups, kKeys}, 4),
                         random_array({kHeads}, 5),
                         random_array({kHeads}, 6)};
    if (decay == full) x.push_back(random_array({kHeads}, 7));
    if (decay == one) {
      x.push_back(random_array({1}, 7));
      x.push_back(random_array({batch, length}, 8));
      x.push_back(random_array({1}, 9));
    }
    return x;
  }
  static Op op(Decay decay, bool state) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      Mamba2Ssd in = arguments(x, decay);
      if (state) in.state = {x.back(), true, false};
      const Mamba2Output out = mamba2_ssd(tape, in);
      return state ? std::vector<Tensor>{out.y, out.end} : std::vector<Tensor>{out.y};
    };
  }

 private Q_SLOTS:
  void everything_of_an_op() {
    for (const auto& [length, groups] : {std::pair<int64_t, int64_t>{1, 1}, {19, 2}, {67, 1}})
      for (Decay decay : {full, one, none}) {
        const bool state = length != 67;  // without one, the decay's gradient at a single token is zero by mathematics
        std::vector<Array> x = inputs(1, length, groups, decay);
        if (state) x.push_back(random_array({1, kHeads, kKeys, kWidth}, 10));
        CHECK_OP(op(decay, state), x, 5e-5);
      }
  }

  void several_chunks() {
    for (int64_t length : {64, 131, 2048})
      for (const QString& problem :
           {check_float(op(full, false), inputs(2, length, 2, full), 5e-5), check_threads(op(one, false), inputs(2, length, 2, one)),
            check_plan(op(full, false), inputs(2, length, 2, full))})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// Steps so long that e^{−Δ A} underflows: finite, and the token's own input is all that is left.
  void strong_decay_stays_finite() {
    std::vector<Array> x = inputs(1, 131, 1, full);
    for (double& v : x[1].values) v = 60 + v;
    for (double& v : x[6].values) v = 3;
    for (DType dtype : {DType::f32, DType::f64})
      for (const Array& values : run_op(op(full, false), x, dtype, Device::cpu()).values)
        QVERIFY(std::all_of(values.values.begin(), values.values.end(), [](double v) { return std::isfinite(v); }));
  }

  void weights_are_the_derivatives() {
    for (Decay decay : {full, one, none}) {
      const auto run = [&](Tape& tape, const std::vector<Tensor>& x) { return std::vector{mamba2_ssd(tape, arguments(x, decay)).y}; };
      const auto weights = [&](Tape& tape, const std::vector<Tensor>& x) {
        return std::vector{mamba2_weights(tape, arguments(x, decay), 1)};
      };
      QVERIFY(worst_read_error(run, weights, inputs(2, 70, 2, decay), 0, {0, 13, 63, 64, 69}) < 1e-10);
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Mamba2SsdTest)
#include "mamba2_ssd_test.moc"

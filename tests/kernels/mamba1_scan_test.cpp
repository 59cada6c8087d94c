#include "kernels/ops/mamba1/mamba1_scan.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class Mamba1ScanTest : public QObject {
  Q_OBJECT

  enum Decay { full, one, none };

  static Mamba1Scan arguments(const std::vector<Tensor>& x, Decay decay) {
    Mamba1Scan in{.u = x[0], .dt = x[1], .z = x[2], .b = x[3], .c = x[4], .skip = x[5], .dt_bias = x[6]};
    if (decay != none) in.a_log = x[7];
    if (decay == one) in.shared_dt = x[8], in.shared_bias = x[9];
    return in;
  }
  static std::vector<Array> inputs(int64_t batch, int64_t length, int64_t width, int64_t states, Decay decay) {
    const Shape rows{batch, length, width}, pairs{batch, length, states};
    std::vector<Array> x{random_array(rows, 1),  random_array(rows, 2),    random_array(rows, 3),   random_array(pairs, 4),
                         random_array(pairs, 5), random_array({width}, 6), random_array({width}, 7)};
    if (decay == full) x.push_back(random_array({width, states}, 8));
    if (decay == one) {
      x.push_back(random_array({1}, 8));
      x.push_back(random_array({batch, length}, 9));
      x.push_back(random_array({1}, 10));
    }
    return x;
  }
  static Op op(Decay decay, bool state) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      Mamba1Scan in = arguments(x, decay);
      if (state) in.state = {x.back(), true, false};
      const Mamba1Output out = mamba1_scan(tape, in);
      return state ? std::vector<Tensor>{out.y, out.end} : std::vector<Tensor>{out.y};
    };
  }

 private Q_SLOTS:
  void everything_of_an_op() {
    for (const auto& [length, width] : {std::pair<int64_t, int64_t>{1, 3}, {11, 5}, {67, 2}, {5, 19}})
      for (Decay decay : {full, one, none}) {
        const bool state = length != 67;  // without one, the decay's gradient at a single token is zero by mathematics
        std::vector<Array> x = inputs(1, length, width, 3, decay);
        if (state) x.push_back(random_array({1, width, 3}, 11));
        CHECK_OP(op(decay, state), x, 5e-5);
      }
  }

  void many_channels_and_chunks() {
    for (Decay decay : {full, one, none})
      for (int64_t length : {32, 131, 2048}) {
        if (decay == one && length == 2048) continue;  // α's gradient is one number, a sum of terms that cancel
        const std::vector<Array> x = inputs(2, length, length > 1000 ? 20 : 150, 16, decay);
        for (const QString& problem :
             {check_float(op(decay, false), x, 5e-5), check_threads(op(decay, false), x), check_plan(op(decay, false), x)})
          QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
  }

  void strong_decay_stays_finite() {
    std::vector<Array> x = inputs(1, 131, 5, 8, full);
    for (double& v : x[1].values) v = 60 + v;
    for (double& v : x[7].values) v = 3;
    for (DType dtype : {DType::f32, DType::f64})
      for (const Array& values : run_op(op(full, false), x, dtype, Device::cpu()).values)
        QVERIFY(std::all_of(values.values.begin(), values.values.end(), [](double v) { return std::isfinite(v); }));
  }

  /// y_td / silu(z_td) is linear in u_jd: its change with u_jd is the weight.
  void weights_are_the_derivatives() {
    const int64_t length = 70, width = 20;
    for (Decay decay : {full, one, none}) {
      std::vector<Array> x = inputs(2, length, width, 5, decay);
      const auto run = [&](bool weights) {
        Arena arena(Device::cpu());
        Tape tape(arena, false);
        std::vector<Tensor> tensors;
        for (const Array& a : x) tensors.push_back(to_tensor(a, DType::f64, arena));
        const Mamba1Scan in = arguments(tensors, decay);
        return to_array(weights ? mamba1_weights(tape, in, 1, {3, 17}) : mamba1_scan(tape, in).y);
      };
      const Array weights = run(true), before = run(false);
      const auto at = [&](int64_t t, int64_t d) { return static_cast<size_t>((length + t) * width + d); };
      const auto gate = [&](int64_t t, int64_t d) { return x[2].values[at(t, d)] / (1 + std::exp(-x[2].values[at(t, d)])); };
      for (int64_t j : {0, 13, 31, 32, 69})
        for (int64_t i : {0, 1}) {
          const int64_t d = i == 0 ? 3 : 17;
          double& value = x[0].values[at(j, d)];
          value += 0.5;
          const Array after = run(false);
          value -= 0.5;
          for (int64_t t = 0; t < length; ++t) {
            const double change = (after.values[at(t, d)] - before.values[at(t, d)]) / 0.5;
            QVERIFY(std::abs(change - gate(t, d) * weights.values[static_cast<size_t>((i * length + t) * length + j)]) < 1e-10);
          }
        }
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::Mamba1ScanTest)
#include "mamba1_scan_test.moc"

#include "kernels/ops/taylor_attention/taylor_attention.h"

#include "tests/support/op_checks.h"
#include "tests/support/read_check.h"

namespace saccade::test {

class TaylorAttentionTest : public QObject {
  Q_OBJECT

  static Op op() {
    return [](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{taylor_attention(tape, x[0], x[1], x[2])}; };
  }
  static std::vector<Array> inputs(int64_t batch, int64_t length, int64_t heads, int64_t d, int64_t values) {
    return {random_array({batch, length, heads, d}, 1), random_array({batch, length, heads, d}, 2),
            random_array({batch, length, heads, values}, 3)};
  }
  /// The definition, pair by pair.
  static Array plain(const std::vector<Array>& x) {
    const Shape& shape = x[2].shape;
    const int64_t length = shape[1], heads = shape[2], values = shape[3], d = x[0].shape[3];
    Array o{shape, std::vector<double>(static_cast<size_t>(shape.size())), false};
    for (int64_t row = 0; row < shape[0] * length * heads; ++row) {
      const int64_t h = row % heads, t = row / heads % length, b = row / heads / length;
      double sum = 0;
      for (int64_t j = 0; j <= t; ++j) {
        const int64_t key = (b * length + j) * heads + h;
        double s = 0;
        for (int64_t i = 0; i < d; ++i) s += x[0].values[static_cast<size_t>(row * d + i)] * x[1].values[static_cast<size_t>(key * d + i)];
        s /= std::sqrt(static_cast<double>(d));
        const double p = 1 + s + s * s / 2;
        sum += p;
        for (int64_t i = 0; i < values; ++i)
          o.values[static_cast<size_t>(row * values + i)] += p * x[2].values[static_cast<size_t>(key * values + i)];
      }
      for (int64_t i = 0; i < values; ++i) o.values[static_cast<size_t>(row * values + i)] /= sum + 1e-12;
    }
    return o;
  }

  /// The results of calls with so many tokens each of one sequence, q, k, v [1, T, H, d or V], that hand on a state.
  static std::vector<Tensor> in_calls(Tape& tape, const std::vector<Tensor>& x, const std::vector<int64_t>& lengths) {
    const auto part = [](const Tensor& y, int64_t begin, int64_t length) {
      const Tensor tokens = y.reshape({y.dim(1), y.dim(2), y.dim(3)}).slice(begin, begin + length);
      return tokens.reshape({1, length, y.dim(2), y.dim(3)});
    };
    const Tensor state = tape.zeros({1, x[0].dim(2), taylor_features(x[0].dim(3)), x[2].dim(3) + 1}, x[2].dtype());
    std::vector<Tensor> out;
    int64_t begin = 0;
    for (int64_t length : lengths) {
      out.push_back(taylor_attention(tape, part(x[0], begin, length), part(x[1], begin, length), part(x[2], begin, length), state));
      begin += length;
    }
    return out;
  }

 private Q_SLOTS:
  void definition() {
    for (int64_t length : {1, 64, 131, 512, 513, 1100}) {
      const std::vector<Array> x = inputs(1, length, 2, 3, 4);
      COMPARE_CLOSE(run_op(op(), x, DType::f64, Device::cpu()).values[0], plain(x), 1e-12, QString("o of %1 tokens").arg(length));
    }
  }

  void everything_of_an_op() {
    for (int64_t length : {2, 19, 67}) CHECK_OP(op(), inputs(1, length, 2, 3, 2), 5e-5);
  }

  /// Beyond a chunk: gradients through the state against central differences of some elements.
  void gradients_through_the_state() {
    std::vector<Array> x = inputs(1, 1060, 1, 2, 2);
    const OpRun run = run_op(op(), x, DType::f64, Device::cpu());
    const Array seed = random_array(x[2].shape, 1000);
    const auto loss = [&] {
      const Array o = plain(x);
      double sum = 0;
      for (size_t i = 0; i < o.values.size(); ++i) sum += o.values[i] * seed.values[i];
      return sum;
    };
    for (size_t input = 0; input < 3; ++input)
      for (size_t element : {size_t(3), size_t(900), size_t(1030), size_t(2100)}) {
        double& value = x[input].values[element];
        const double kept = value, h = 1e-5;
        value = kept + h;
        const double up = loss();
        value = kept - h;
        const double down = loss();
        value = kept;
        const double expected = (up - down) / (2 * h), actual = run.values[1 + input].values[element];
        QVERIFY2(std::abs(actual - expected) < 1e-7 * std::max(1.0, std::abs(expected)),
                 qPrintable(QString("input %1, element %2: %3, expected %4").arg(input).arg(element).arg(actual).arg(expected)));
      }
  }

  void long_sequences_on_threads_and_plan() {
    const std::vector<Array> x = inputs(2, 2048, 3, 4, 5);
    for (const QString& problem : {check_float(op(), x, 5e-5), check_threads(op(), x), check_plan(op(), x)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// Calls behind each other that hand on a state make of one sequence what a single pass does.
  void calls_that_carry_a_state() {
    const std::vector<Array> x = inputs(1, 1100, 2, 3, 4);
    const Array whole = plain(x);
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{1100}, {33, 64, 1003}, {512, 585, 1, 1, 1}}) {
      const Op calls = [&](Tape& tape, const std::vector<Tensor>& in) { return in_calls(tape, in, lengths); };
      std::vector<double> o;
      const OpRun run = run_op(calls, x, DType::f64, Device::cpu());
      for (size_t i = 0; i < lengths.size(); ++i) o.insert(o.end(), run.values[i].values.begin(), run.values[i].values.end());
      COMPARE_CLOSE((Array{whole.shape, o, false}), whole, 1e-12, QString("o of %1 calls").arg(lengths.size()));
      const QString problem = check_plan(calls, x);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }

  /// o_t is linear in v_j: its change with v_j is the weight.
  void weights_are_the_derivatives() {
    const auto weights = [](Tape& tape, const std::vector<Tensor>& x) { return std::vector{taylor_weights(tape, x[0], x[1], 1)}; };
    QVERIFY(worst_read_error(op(), weights, inputs(2, 70, 2, 3, 2), 2, {0, 13, 69}) < 1e-12);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TaylorAttentionTest)
#include "taylor_attention_test.moc"

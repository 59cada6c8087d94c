#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/op_checks.h"

namespace saccade::test {

class CrossEntropyTest : public QObject {
  Q_OBJECT

  static std::vector<Array> inputs(int rows, int width, int vocabulary) {
    Array targets{{rows}, {}, true};
    for (int i = 0; i < rows; ++i) targets.values.push_back((i * i + 5 * i) % vocabulary);
    return {random_array({rows, width}, 1), random_array({vocabulary, width}, 2), targets};
  }
  static std::vector<Tensor> mean(Tape& t, const std::vector<Tensor>& x) { return {linear_cross_entropy(t, x[0], x[1], x[2]).mean}; }
  static std::vector<Tensor> both(Tape& t, const std::vector<Tensor>& x) {
    const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2]);
    return {loss.mean, loss.tokens};
  }

  static constexpr double kPenalty = 0.5;
  static std::vector<Tensor> penalized(Tape& t, const std::vector<Tensor>& x) {
    const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], {.max_logit_penalty = kPenalty});
    return {loss.mean, loss.tokens};
  }
  /// c/2 · mean over the rows of (largest logit)².
  template <class T>
  static T penalty_of(const Tensor& hidden, const Tensor& weight) {
    const T *h = hidden.data<T>(), *w = weight.data<T>();
    const int64_t rows = hidden.dim(0), width = hidden.dim(1);
    T sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      T top = -std::numeric_limits<T>::infinity();
      for (int64_t v = 0; v < weight.dim(0); ++v)
        top = std::max(top, std::inner_product(h + r * width, h + (r + 1) * width, w + v * width, T(0)));
      sum += top * top;
    }
    return static_cast<T>(kPenalty / 2) * sum / static_cast<T>(rows);
  }
  /// What the gradients of `penalized` are those of: its values with the penalty that they leave out.
  static std::vector<Tensor> penalized_loss(Tape& t, const std::vector<Tensor>& x) {
    const std::vector<Tensor> loss = penalized(t, x);
    if (!t.device().is_plan())
      dispatch(loss[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        *loss[0].data<T>() += penalty_of<T>(x[0], x[1]);
      });
    return loss;
  }
  static void gradient_rows() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("width");
    QTest::addColumn<int>("vocabulary");
    QTest::newRow("one row") << 1 << 1 << 2;
    QTest::newRow("primes") << 13 << 7 << 11;
    QTest::newRow("ragged lanes") << 5 << 3 << 37;
  }

 private Q_SLOTS:
  void gradients_data() { gradient_rows(); }
  void gradients() {
    QFETCH(int, rows);
    QFETCH(int, width);
    QFETCH(int, vocabulary);
    CHECK_OP(both, inputs(rows, width, vocabulary));
  }
  void penalized_gradients_data() { gradient_rows(); }
  void penalized_gradients() {
    QFETCH(int, rows);
    QFETCH(int, width);
    QFETCH(int, vocabulary);
    CHECK_OP(penalized_loss, inputs(rows, width, vocabulary));
  }
  /// Logits −2, −1, −1, −3 with target 3: −1 is pulled up to 0 where it stands first, and the values stay the same.
  void the_first_of_equal_logits_is_penalized() {
    const std::vector<Array> all{{{1, 1}, {2}}, {{4, 1}, {-1, -0.5, -0.5, -1.5}}, {{1}, {3}, true}};
    for (DType dtype : {DType::f64, DType::f32}) {
      const OpRun off = run_op(both, all, dtype, Device::cpu()), on = run_op(penalized, all, dtype, Device::cpu());
      for (size_t i : {size_t{0}, size_t{1}}) QCOMPARE(on.values[i].values, off.values[i].values);
      const double d_mean = random_array({1}, 1000).values[0], pull = kPenalty * -1 * d_mean;  // run_op goes back from random gradients
      const std::vector<double> expected_weight{0, pull * 2, 0, 0};
      for (size_t v = 0; v < 4; ++v) QVERIFY(std::abs(on.values[3].values[v] - off.values[3].values[v] - expected_weight[v]) < 1e-6);
      QVERIFY(std::abs(on.values[2].values[0] - off.values[2].values[0] - pull * -0.5) < 1e-6);
    }
  }
  /// Rows with target −1 add nothing to any value or gradient; the others' are as without them, but for N.
  void rows_without_a_target() {
    for (const bool with_penalty : {false, true}) {
      std::vector<Array> all = inputs(13, 7, 11), kept = all;
      kept[0] = {{9, 7}, {}};
      kept[2] = {{9}, {}, true};
      for (size_t r = 0; r < 13; ++r) {
        if (r % 3 == 1) {
          all[2].values[r] = -1;
          continue;
        }
        kept[0].values.insert(kept[0].values.end(), all[0].values.begin() + r * 7, all[0].values.begin() + (r + 1) * 7);
        kept[2].values.push_back(all[2].values[r]);
      }
      for (const QString& problem :
           {check_float(with_penalty ? penalized : both, all), check_threads(with_penalty ? penalized : both, all)})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
      if (!with_penalty) CHECK_OP(both, all);
      const Op op = with_penalty ? penalized : both;
      const auto mean_only = [op](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {op(t, x)[0]}; };
      const OpRun masked = run_op(mean_only, all, DType::f64, Device::cpu()), plain = run_op(mean_only, kept, DType::f64, Device::cpu());
      const double share = 9.0 / 13;
      QVERIFY(std::abs(masked.values[0].values[0] - share * plain.values[0].values[0]) < 1e-14);
      for (size_t r = 0, k = 0; r < 13; ++r)
        for (size_t i = 0; i < 7; ++i) {
          const double expected = r % 3 == 1 ? 0 : share * plain.values[1].values[k * 7 + i];
          QVERIFY(std::abs(masked.values[1].values[r * 7 + i] - expected) < 1e-14);
          if (i == 6 && r % 3 != 1) ++k;
        }
      for (size_t i = 0; i < 77; ++i) QVERIFY(std::abs(masked.values[2].values[i] - share * plain.values[2].values[i]) < 1e-14);
    }
  }
  /// With room for the rows that have a target alone, and for some more, values and gradients are those of all rows.
  void targeted_rows_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("vocabulary");
    QTest::addColumn<int>("every");
    QTest::addColumn<int>("room");
    QTest::newRow("exact room") << 13 << 11 << 3 << 4;
    QTest::newRow("more room") << 13 << 11 << 3 << 9;
    QTest::newRow("one target, the last") << 13 << 11 << 13 << 1;
    QTest::newRow("one target, more room") << 13 << 11 << 13 << 12;
    QTest::newRow("no target") << 13 << 11 << 0 << 4;
    QTest::newRow("all targets") << 13 << 11 << 1 << 13;
    QTest::newRow("several blocks") << 5001 << 53 << 2 << 2600;
    QTest::newRow("several tasks") << 700 << 33001 << 2 << 350;
  }
  void targeted_rows() {
    QFETCH(int, rows);
    QFETCH(int, vocabulary);
    QFETCH(int, every);
    QFETCH(int, room);
    std::vector<Array> all = inputs(rows, 7, vocabulary);
    for (int r = 0; r < rows; ++r)
      if (every == 0 || r % every != every - 1) all[2].values[static_cast<size_t>(r)] = -1;
    for (const double penalty : {0.0, kPenalty}) {
      const auto op = [penalty](int64_t most) {
        return [penalty, most](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
          const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], {penalty, most});
          return {loss.mean, loss.tokens};
        };
      };
      const Op some = op(room), whole = op(0);
      for (const auto& [dtype, limit] : {std::pair{DType::f64, 1e-14}, std::pair{DType::f32, 1e-6}}) {
        const OpRun listed = run_op(some, all, dtype, Device::cpu()), expected = run_op(whole, all, dtype, Device::cpu());
        QCOMPARE(listed.values.size(), size_t{4});  // mean, tokens, gradients
        for (size_t i = 0; i < 4; ++i) {
          double largest = 0;
          for (const double v : expected.values[i].values) largest = std::max(largest, std::abs(v));
          QCOMPARE(largest > 0, every > 0);
          for (size_t j = 0; j < expected.values[i].values.size(); ++j)
            QVERIFY(std::abs(listed.values[i].values[j] - expected.values[i].values[j]) <= limit * std::max(1.0, largest));
        }
        for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
          for (size_t i = 0; i < 7 && all[2].values[r] < 0; ++i) QCOMPARE(listed.values[2].values[r * 7 + i], 0.0);
      }
      for (const QString& problem : {check_threads(some, all), check_plan(some, all)}) QVERIFY2(problem.isEmpty(), qPrintable(problem));
      if (rows == 13 && penalty == 0) CHECK_OP(some, all);
    }
  }
  /// What is computed is what there is room for, as the plan counts it; logits of other rows have no memory.
  void targeted_rows_cost_what_they_are() {
    Arena arena(Device::plan());
    const auto cost = [&](int64_t rows, int64_t most) {
      Tape tape(arena, true);
      arena.reset_peak();
      Tensor hidden = tape.empty({rows, 8}, DType::f32), weight = tape.empty({60, 8}, DType::f32);
      hidden.set_differentiable(true);
      weight.set_differentiable(true);
      linear_cross_entropy(tape, hidden, weight, tape.empty({rows}, DType::i32), {0, most});
      return std::pair(tape.cost().flops, arena.peak_extent());
    };
    QCOMPARE(cost(1000, 125).first, cost(125, 0).first);
    QCOMPARE(cost(1000, 1000), cost(1000, 0));
    QCOMPARE(cost(1000, 2000), cost(1000, 0));
    QVERIFY(cost(1000, 125).second < cost(1000, 0).second / 2);
  }
  /// Small whole numbers, every row of weights twice, so that the largest logit has a twin at least; no target in every third row.
  static std::vector<Array> with_twins(int rows, int width, int vocabulary) {
    std::vector<Array> all = inputs(rows, width, vocabulary);
    for (Array* x : {&all[0], &all[1]})
      for (double& v : x->values) v = std::round(3 * v);
    std::vector<double>& weight = all[1].values;
    std::copy_n(weight.begin(), vocabulary / 2 * width, weight.begin() + vocabulary / 2 * width);
    for (size_t r = 1; r < static_cast<size_t>(rows); r += 3) all[2].values[r] = -1;
    return all;
  }
  /// The first of the largest logits of each row, as a pencil finds it.
  static std::vector<double> places(const std::vector<Array>& all) {
    const auto rows = all[0].shape[0], width = all[0].shape[1], vocabulary = all[1].shape[0];
    std::vector<double> found;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> logits;
      const auto h = all[0].values.begin() + r * width;
      for (int64_t v = 0; v < vocabulary; ++v) logits.push_back(std::inner_product(h, h + width, all[1].values.begin() + v * width, 0.0));
      const auto largest = std::max_element(logits.begin(), logits.end()) - logits.begin();
      found.push_back(all[2].values[static_cast<size_t>(r)] < 0 ? -1 : static_cast<double>(largest));
    }
    return found;
  }
  static Op telling_the_largest(double penalty, int64_t most) {
    return [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Tensor largest = t.empty({x[2].size()}, DType::i32);
      const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], {penalty, most, largest});
      return {loss.mean, loss.tokens, largest};
    };
  }
  void largest_logits_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("vocabulary");
    QTest::addColumn<int>("room");
    QTest::newRow("one row") << 1 << 2 << 0;
    QTest::newRow("primes") << 13 << 11 << 0;
    QTest::newRow("exact room") << 13 << 11 << 9;
    QTest::newRow("more room") << 13 << 11 << 11;
    QTest::newRow("several blocks") << 5001 << 53 << 0;
    QTest::newRow("several blocks in room") << 5001 << 53 << 3400;
    QTest::newRow("several tasks") << 307 << 33001 << 0;
    QTest::newRow("several tasks in room") << 307 << 33001 << 205;
  }
  /// With and without a penalty, of which the values are the same; and all else is as where they are not asked for, gradients included.
  void largest_logits() {
    QFETCH(int, rows);
    QFETCH(int, vocabulary);
    QFETCH(int, room);
    const std::vector<Array> all = with_twins(rows, 5, vocabulary);
    const std::vector<double> expected = places(all);
    QVERIFY(std::count(expected.begin(), expected.end(), -1) == (rows + 1) / 3);
    for (const double penalty : {0.0, kPenalty}) {
      const Op told = telling_the_largest(penalty, room);
      const Op untold = [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
        const CrossEntropy loss = linear_cross_entropy(t, x[0], x[1], x[2], {penalty, room});
        return {loss.mean, loss.tokens};
      };
      for (const DType dtype : {DType::f64, DType::f32}) {
        OpRun run = run_op(told, all, dtype, Device::cpu());
        QCOMPARE(run.values[2].values, expected);
        run.values.erase(run.values.begin() + 2);
        const OpRun without = run_op(untold, all, dtype, Device::cpu());
        QCOMPARE(run.values.size(), size_t{4});
        for (size_t i = 0; i < 4; ++i) QCOMPARE(run.values[i].values, without.values[i].values);
        const QString problem = check_threads(told, all, dtype);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
      const QString problem = check_plan(told, all);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }
  /// NaN is passed over, wherever it stands and whatever its sign, and a row of nothing else has no largest logit; −∞ · −∞ is one.
  void largest_logits_beside_nan() {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    for (const DType dtype : {DType::f64, DType::f32})
      for (const int64_t room : {0, 5})
        for (const double odd : {nan, -nan, -infinity})
          for (size_t column = 0; column < 40; ++column) {
            std::vector<Array> all{{{7, 1}, {1, 2, 1, 1, odd, 1, nan}}, {{40, 1}, {}}, {{7}, {0, -1, -1, 3, 0, 5, 0}, true}};
            for (int v = 0; v < 40; ++v) all[1].values.push_back(1 + v % 7);
            all[1].values[column] = odd;
            const OpRun run = run_op(telling_the_largest(0, room), all, dtype, Device::cpu());
            const double first = column == 6 ? 13 : 6, none = -1, product = odd == -infinity ? static_cast<double>(column) : none;
            QCOMPARE(run.values[2].values, (std::vector<double>{first, none, none, first, product, first, none}));
          }
  }
  void more_targets_than_there_is_room_for() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const std::vector<Array> all = inputs(5, 2, 4);
    const Tensor hidden = to_tensor(all[0], DType::f32, arena), weight = to_tensor(all[1], DType::f32, arena),
                 targets = to_tensor(all[2], DType::f32, arena);
    try {
      linear_cross_entropy(tape, hidden, weight, targets, {0, 4});
      QFAIL("five targets in room for four");
    } catch (const DataError& error) {
      QCOMPARE(QString(error.what()), QString("[linear_cross_entropy] 5 rows have a target; expected at most 4"));
    }
  }
  /// More rows than one block and one task, neither a divisor.
  void blocks() {
    for (const auto& [rows, vocabulary] : {std::pair{2311, 53}, std::pair{307, 33001}}) {
      const std::vector<Array> all = inputs(rows, 5, vocabulary);
      for (const QString& problem : {check_float(both, all), check_threads(both, all), check_plan(both, all), check_float(penalized, all),
                                     check_threads(penalized, all)})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }
  void values() {
    const std::vector<Array> all = inputs(7, 3, 5);
    const OpRun run = run_op(both, all, DType::f64, Device::cpu());
    double sum = 0;
    for (size_t r = 0; r < 7; ++r) {
      double logits[5], total = 0;
      for (size_t v = 0; v < 5; ++v) {
        logits[v] = 0;
        for (size_t i = 0; i < 3; ++i) logits[v] += all[0].values[r * 3 + i] * all[1].values[v * 3 + i];
        total += std::exp(logits[v]);
      }
      const double expected = std::log(total) - logits[static_cast<size_t>(all[2].values[r])];
      QVERIFY(std::abs(run.values[1].values[r] - expected) < 1e-13);
      sum += expected / 7;
    }
    QVERIFY(std::abs(run.values[0].values[0] - sum) < 1e-13);
  }
  /// Logits of a thousand overflow exp; the loss stays right.
  void large_logits() {
    std::vector<Array> all = inputs(3, 2, 4);
    for (double& x : all[0].values) x *= 1000;
    const QString problem = check_float(both, all);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }
  void without_recording_no_gradient_is_made() {
    Arena arena(Device::plan());
    const auto flops = [&](bool recording) {
      Tape tape(arena, recording);
      Tensor hidden = tape.empty({10, 8}, DType::f32), weight = tape.empty({6, 8}, DType::f32);
      hidden.set_differentiable(true);
      weight.set_differentiable(true);
      linear_cross_entropy(tape, hidden, weight, tape.empty({2, 5}, DType::i32));
      return tape.cost().flops;
    };
    QCOMPARE(flops(true) - flops(false), 2 * 2.0 * 10 * 8 * 6);
  }
  void refused() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    std::vector<Array> all = inputs(3, 2, 4);
    const Tensor hidden = to_tensor(all[0], DType::f32, arena), weight = to_tensor(all[1], DType::f32, arena);
    for (double bad : {-2.0, 4.0}) {
      all[2].values[1] = bad;
      QVERIFY_THROWS_EXCEPTION(DataError, linear_cross_entropy(tape, hidden, weight, to_tensor(all[2], DType::f32, arena)));
    }
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, linear_cross_entropy(tape, hidden, weight, tape.empty({2}, DType::i32)));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, linear_cross_entropy(tape, hidden, weight, tape.empty({3}, DType::i32), {-1e-4}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, linear_cross_entropy(tape, hidden, weight, tape.empty({3}, DType::i32), {0, -1}));
    for (const Tensor& largest : {tape.empty({2}, DType::i32), tape.empty({3}, DType::f32)})
      QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                               linear_cross_entropy(tape, hidden, weight, tape.empty({3}, DType::i32), {.largest = largest}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             linear_cross_entropy(tape, hidden, tape.empty({4, 3}, DType::f32), tape.empty({3}, DType::i32)));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CrossEntropyTest)
#include "cross_entropy_test.moc"

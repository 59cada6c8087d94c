#include "kernels/cpu/gemm.h"

#include "kernels/engine/parallel.h"
#include "tests/support/compare.h"

namespace saccade::test {

class GemmTest : public QObject {
  Q_OBJECT

  struct Case {
    bool ta, tb, add;
    int64_t m, n, k, pad;
  };
  static Array reference(const Case& c, const Array& a, const Array& b, const Array& before, double alpha) {
    const int64_t lda = (c.ta ? c.m : c.k) + c.pad, ldb = (c.tb ? c.k : c.n) + c.pad, ldc = c.n + c.pad;
    Array out = before;
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < c.k; ++p)
          sum += a.values[static_cast<size_t>(c.ta ? p * lda + i : i * lda + p)] *
                 b.values[static_cast<size_t>(c.tb ? j * ldb + p : p * ldb + j)];
        double& to = out.values[static_cast<size_t>(i * ldc + j)];
        to = alpha * sum + (c.add ? to : 0);
      }
    return out;
  }

  template <class T>
  static Array run(const Case& c, const Array& a, const Array& b, const Array& before, double alpha, bool serial) {
    Arena arena(Device::cpu());
    const Tensor ta = to_tensor(a, dtype_of<T>(), arena), tb = to_tensor(b, dtype_of<T>(), arena),
                 out = to_tensor(before, dtype_of<T>(), arena);
    const auto f = serial ? cpu::gemm_serial<T> : cpu::gemm<T>;
    f(c.ta, c.tb, c.m, c.n, c.k, static_cast<T>(alpha), ta.data<T>(), a.shape[1], tb.data<T>(), b.shape[1], c.add, out.data<T>(),
      before.shape[1]);
    return to_array(out);
  }

  static void check(const Case& c) {
    const Array a = random_array(c.ta ? Shape{c.k, c.m + c.pad} : Shape{c.m, c.k + c.pad}, 1);
    const Array b = random_array(c.tb ? Shape{c.n, c.k + c.pad} : Shape{c.k, c.n + c.pad}, 2);
    Array before = random_array({c.m, c.n + c.pad}, 3);
    const Array expected = reference(c, a, b, before, 0.5);
    for (bool serial : {false, true}) {
      COMPARE_CLOSE(run<double>(c, a, b, before, 0.5, serial), expected, 1e-13, "double");
      COMPARE_CLOSE(run<float>(c, a, b, before, 0.5, serial), expected, 5e-6, "float");
    }
  }

 private Q_SLOTS:
  void products_data() {
    QTest::addColumn<int>("m");
    QTest::addColumn<int>("n");
    QTest::addColumn<int>("k");
    for (const auto& [m, n, k] :
         {std::tuple{1, 1, 1}, {1, 300, 17}, {37, 1, 41}, {257, 263, 5}, {13, 7, 700}, {193, 67, 1031}, {2053, 31, 19}, {19, 31, 4099}})
      QTest::addRow("%dx%dx%d", m, n, k) << m << n << k;
  }
  void products() {
    QFETCH(int, m);
    QFETCH(int, n);
    QFETCH(int, k);
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (bool add : {false, true}) check({ta, tb, add, m, n, k, add ? 3 : 0});
  }

  void threads_do_not_matter_data() { products_data(); }
  void threads_do_not_matter() {
    QFETCH(int, m);
    QFETCH(int, n);
    QFETCH(int, k);
    const int before = thread_count();
    for (bool ta : {false, true}) {
      const Case c{ta, false, true, m, n, k, 0};
      const Array a = random_array(ta ? Shape{k, m} : Shape{m, k}, 1), b = random_array({k, n}, 2), start = random_array({m, n}, 3);
      set_thread_count(1);
      const Array one = run<float>(c, a, b, start, 1, false);
      for (int threads : {2, 3}) {
        set_thread_count(threads);
        QVERIFY(run<float>(c, a, b, start, 1, false).values == one.values);
      }
    }
    set_thread_count(before);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GemmTest)
#include "gemm_test.moc"

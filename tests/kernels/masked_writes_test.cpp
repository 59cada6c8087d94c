#include <QtTest>
#include <cmath>

#include "kernels/engine/transfer.h"
#include "kernels/ops/delta_rule/delta_rule.h"
#include "kernels/ops/mask_value/mask_value.h"
#include "kernels/ops/taylor_attention/mask_write.h"
#include "kernels/ops/taylor_attention/taylor_attention.h"
#include "kernels/ops/wkv/wkv.h"

namespace saccade::test {

/// Recurrences without what one token writes, against states updated by hand, in double.
class MaskedWritesTest : public QObject {
  Q_OBJECT

  static constexpr int64_t T = 13, H = 2, K = 3, V = 4, kHead = 1, kToken = 5;

  Arena arena{Device::cpu()};
  Tape tape{arena, false};

  Tensor numbers(const Shape& shape, double phase) {
    const Tensor x = arena.allocate(shape, DType::f64);
    for (int64_t i = 0; i < x.size(); ++i) x.data<double>()[i] = std::sin(1.7 * static_cast<double>(i) + phase);
    return x;
  }
  static double at(const Tensor& x, int64_t t, int64_t h, int64_t i) { return x.data<double>()[(t * x.dim(2) + h) * x.dim(3) + i]; }
  static void compare(const Tensor& o, int64_t t, int64_t h, int64_t i, double expected) {
    QVERIFY2(std::abs(at(o, t, h, i) - expected) < 1e-10,
             qPrintable(QString("t %1 h %2 i %3: %4, expected %5").arg(t).arg(h).arg(i).arg(at(o, t, h, i)).arg(expected)));
  }

 private Q_SLOTS:
  void deltaRule() {
    const Tensor q = numbers({1, T, H, K}, 0), k = numbers({1, T, H, K}, 1), v = numbers({1, T, H, V}, 2), beta = numbers({1, T, H}, 3);
    for (int64_t i = 0; i < beta.size(); ++i) beta.data<double>()[i] = std::abs(beta.data<double>()[i]);
    for (int64_t i = 0; i < k.size(); ++i) k.data<double>()[i] *= 0.5;
    DeltaRule rule{.q = q, .k = k, .v = mask_value(tape, v, kHead, kToken), .beta = beta, .scale = 1};
    const Tensor o = delta_rule(tape, rule).o;
    for (int64_t h = 0; h < H; ++h) {
      double s[K][V] = {};
      for (int64_t t = 0; t < T; ++t) {
        const double b = beta.data<double>()[t * H + h];
        for (int64_t j = 0; j < V; ++j) {
          double held = 0;
          for (int64_t i = 0; i < K; ++i) held += s[i][j] * at(k, t, h, i);
          const double written = h == kHead && t == kToken ? 0 : at(v, t, h, j);  // the removal stays
          for (int64_t i = 0; i < K; ++i) s[i][j] += at(k, t, h, i) * b * (written - held);
        }
        for (int64_t j = 0; j < V; ++j) {
          double read = 0;
          for (int64_t i = 0; i < K; ++i) read += s[i][j] * at(q, t, h, i);
          compare(o, t, h, j, read);
        }
      }
    }
  }

  void wkvOfRwkv5() {
    const Tensor r = numbers({1, T, H, K}, 0), k = numbers({1, T, H, K}, 1), v = numbers({1, T, H, K}, 2);
    const Tensor w = numbers({H, K}, 3), u = numbers({H, K}, 4);
    const Tensor y = wkv(tape, r, k, mask_value(tape, v, kHead, kToken), w, u).y;
    for (int64_t h = 0; h < H; ++h) {
      double s[K][K] = {};
      for (int64_t t = 0; t < T; ++t)
        for (int64_t j = 0; j < K; ++j) {
          double read = 0;
          const double written = h == kHead && t == kToken ? 0 : at(v, t, h, j);
          for (int64_t i = 0; i < K; ++i) {
            const double kv = at(k, t, h, i) * written;
            read += at(r, t, h, i) * (s[i][j] + u.data<double>()[h * K + i] * kv);
            s[i][j] = std::exp(-std::exp(w.data<double>()[h * K + i])) * s[i][j] + kv;
          }
          compare(y, t, h, j, read);
        }
    }
  }

  void taylorAttention() {
    const Tensor q = numbers({1, T, H, K}, 0), k = numbers({1, T, H, K}, 1), v = numbers({1, T, H, V}, 2);
    const Tensor o = taylor_attention(tape, q, k, v);
    mask_taylor_write(tape, q, k, v, kHead, kToken, o);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t i = 0; i < V; ++i) {
          double sum = 0, total = 1e-12;
          for (int64_t j = 0; j <= t; ++j) {
            if (h == kHead && j == kToken) continue;
            double s = 0;
            for (int64_t c = 0; c < K; ++c) s += at(q, t, h, c) * at(k, j, h, c) / std::sqrt(static_cast<double>(K));
            sum += (1 + s + s * s / 2) * at(v, j, h, i), total += 1 + s + s * s / 2;
          }
          compare(o, t, h, i, sum / total);
        }
  }

  void maskedValueLeavesTheOriginal() {
    const Tensor v = numbers({2, T, H, V}, 0);
    const std::vector<double> before = to_doubles(v);
    std::vector<double> expected = before;
    std::fill_n(expected.begin() + (kToken * H + kHead) * V, V, 0.0);
    QCOMPARE(to_doubles(mask_value(tape, v, kHead, kToken)), expected);
    QCOMPARE(to_doubles(v), before);
    QVERIFY_THROWS_EXCEPTION(UsageError, mask_value(tape, v, H, 0));
    QVERIFY_THROWS_EXCEPTION(UsageError, mask_value(tape, v, 0, T));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::MaskedWritesTest)
#include "masked_writes_test.moc"

#include "kernels/ops/decoding/decoding.h"

#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"
#include "kernels/ops/top1_element/top1_element.h"
#include "tests/kernels/plain_attention.h"

namespace saccade::test {

/// Compares the newest rows computed from a cache with the rows of the whole sequence.
class DecodingTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kBatch = 2, kHeads = 3, kWidth = 5, kLength = 150, kCapacity = 170;

  /// Rows first … first + n − 1 of x [B, T, …].
  static Array rows(const Array& x, int64_t first, int64_t n) {
    Array out{x.shape, {}, x.integer};
    const int64_t length = x.shape[1], row = x.shape.size() / x.shape[0] / length;
    for (int64_t b = 0; b < x.shape[0]; ++b)
      out.values.insert(out.values.end(), x.values.begin() + (b * length + first) * row, x.values.begin() + (b * length + first + n) * row);
    out.shape = {x.shape[0], n, x.shape[2], x.shape[3]};
    return out;
  }
  /// Places first … first + n − 1 of x [B, H, T, places].
  static Array places(const Array& x, int64_t first, int64_t n) {
    Array out{{x.shape[0], x.shape[1], n, x.shape.size() / x.shape[0] / x.shape[1] / x.shape[2]}, {}, x.integer};
    const int64_t row = out.shape[3];
    for (int64_t line = 0; line < x.shape[0] * x.shape[1]; ++line)
      out.values.insert(out.values.end(), x.values.begin() + (line * x.shape[2] + first) * row,
                        x.values.begin() + (line * x.shape[2] + first + n) * row);
    return out;
  }

  struct Cache {
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    Tensor q, k, v;
    int64_t first;

    /// The first tokens in one piece, the n newest in another.
    Cache(const std::vector<Array>& x, DType dtype, int64_t first_new, int64_t n) : first(first_new) {
      q = to_tensor(rows(x[0], first, n), dtype, arena);
      for (auto [cache, all] : {std::pair{&k, &x[1]}, std::pair{&v, &x[2]}}) {
        *cache = arena.allocate({all->shape[0], kCapacity, kHeads, kWidth}, dtype);
        if (first > 0) append_rows(tape, to_tensor(rows(*all, 0, first), dtype, arena), *cache, {0});
        append_rows(tape, to_tensor(rows(*all, first, n), dtype, arena), *cache, {first});
      }
    }
  };

  static double tolerance(DType dtype) { return dtype == DType::f32 ? 2e-6 : 1e-13; }

  static std::vector<std::vector<Array>> inputs() {
    std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth), constant = x;
    constant[1] = random_array({1, kLength, kHeads, kWidth}, 8);
    return {x, constant};
  }

  /// f(dtype, first position, number of new tokens)
  template <class F>
  static void for_pieces(F&& f) {
    for (DType dtype : {DType::f64, DType::f32})
      for (const auto& [first, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {36, 5}, {64, 70}, {149, 1}})
        f(dtype, first, n);
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void attention_from_a_cache() {
    for (const std::vector<Array>& x : inputs())
      for (const ScoreOptions& score : {ScoreOptions{0.6, 0, false}, ScoreOptions{0.6, 0, true}, ScoreOptions{0.6, 7, false}})
        for_pieces([&](DType dtype, int64_t first, int64_t n) {
          Cache c(x, dtype, first, n);
          const Array whole = to_array(
              attention(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena), to_tensor(x[2], dtype, c.arena), score)
                  .o);
          COMPARE_CLOSE(to_array(cached_attention(c.tape, c.q, c.k, c.v, score, {first})), rows(whole, first, n), tolerance(dtype), "o");
        });
  }

  void element_from_a_cache() {
    for (const std::vector<Array>& x : inputs())
      for_pieces([&](DType dtype, int64_t first, int64_t n) {
        Cache c(x, dtype, first, n);
        const Top1Element whole = top1_element(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena),
                                               to_tensor(x[2], dtype, c.arena), {0.6, 0, true});
        const CachedElement part = cached_top1_element(c.tape, c.q, c.k, c.v, {0.6, 0, true}, {first});
        QCOMPARE(to_array(part.selected).values, places(to_array(whole.selected.reshape({kBatch, kHeads, kLength, 1})), first, n).values);
        COMPARE_CLOSE(to_array(part.o), rows(to_array(whole.o), first, n), 1e-15, "o");
      });
  }

  void chunk_from_a_cache_data() {
    QTest::addColumn<int>("selection");
    QTest::addColumn<int>("chunk");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("share");
    for (int selection = 0; selection < 4; ++selection)
      for (const auto& [chunk, top_k, share] :
           std::vector<std::tuple<int, int, bool>>{{16, 1, false}, {16, 3, true}, {1, 2, false}, {70, 1, false}, {160, 1, false}})
        QTest::addRow("selection %d chunk %d top_k %d shared %d", selection, chunk, top_k, share) << selection << chunk << top_k << share;
  }
  void chunk_from_a_cache() {
    QFETCH(int, selection);
    QFETCH(int, chunk);
    QFETCH(int, top_k);
    QFETCH(bool, share);
    const ChunkOptions options{chunk, top_k, share, static_cast<ChunkSelection>(selection), 7};
    const ScoreOptions score{0.6, 0, selection == 0};
    const std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth);
    for_pieces([&](DType dtype, int64_t first, int64_t n) {
      Cache c(x, dtype, first, n);
      const Top1Chunk whole = top1_chunk(c.tape, to_tensor(x[0], dtype, c.arena), to_tensor(x[1], dtype, c.arena),
                                         to_tensor(x[2], dtype, c.arena), score, options);
      Tensor means;
      if (keeps_mean_keys(options)) {
        means = c.arena.allocate({kBatch, kCapacity / chunk, kHeads, kWidth}, dtype);
        if (first > 0) extend_mean_keys(c.tape, c.k, means, options, {0}, first);
        extend_mean_keys(c.tape, c.k, means, options, {first}, n);
      }
      const CachedChunk part = cached_top1_chunk(c.tape, c.q, c.k, c.v, means, score, options, {first});
      QCOMPARE(to_array(part.selected).values, places(to_array(whole.selected), first, n).values);
      COMPARE_CLOSE(to_array(part.o), rows(to_array(whole.o), first, n), tolerance(dtype), "o");
    });
  }

  void errors() {
    const std::vector<Array> x = random_heads(kBatch, kLength, kHeads, kWidth);
    Cache c(x, DType::f32, 10, 3);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, append_rows(c.tape, c.q, c.k, {kCapacity - 2}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, cached_attention(c.tape, c.q, c.k, c.v, {}, {kCapacity - 2}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, cached_top1_element(c.tape, c.q, c.k, c.q, {}, {10}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             cached_top1_chunk(c.tape, c.q, c.k, c.v, {}, {}, {16, 1, false, ChunkSelection::approx, 0}, {10}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DecodingTest)
#include "decoding_test.moc"
